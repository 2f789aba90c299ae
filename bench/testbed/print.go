package testbed

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Table prints the head of a table.
func Table(columns ...string) {
	Row(columns...)
	fmt.Println(strings.Repeat("|---", len(columns)) + "|")
}

// Row prints a row of one.
func Row(columns ...string) { fmt.Println("| " + strings.Join(columns, " | ") + " |") }

// Load is how many wanted the machine's processors in the last minute, as Linux tells it.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
}

// Median is the upper one of an even number.
func Median[N cmp.Ordered](list []N) N {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
