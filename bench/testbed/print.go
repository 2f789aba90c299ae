package testbed

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Table prints the head of a table.
func Table(columns ...string) {
	Row(columns...)
	fmt.Println(strings.Repeat("|---", len(columns)) + "|")
}

// Row prints a row of one.
func Row(columns ...string) { fmt.Println("| " + strings.Join(columns, " | ") + " |") }

// load is how many wanted the machine's processors in the last minute, as Linux tells it.
func load() string {
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

// Seconds is a time as tables have it.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Millis is a short time.
func Millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// Speed is a time and what that is for so many bytes.
func Speed(bytes int64, d time.Duration) string {
	return fmt.Sprintf("%s (%.0f MB/s)", Seconds(d), float64(bytes)/1e6/d.Seconds())
}

// Ratio is one figure by another.
func Ratio[N float64 | time.Duration](of, by N) string {
	return fmt.Sprintf("%.2f", float64(of)/float64(by))
}
