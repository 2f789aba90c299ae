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

// Row prints a row of a table.
func Row(columns ...string) { fmt.Println("| " + strings.Join(columns, " | ") + " |") }

// load returns the machine's load average of the last minute. Only Linux has it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return minute
}

// Median returns the median, the upper one if the number of values is even.
func Median[N cmp.Ordered](list []N) N {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// Seconds formats a time for tables.
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Millis formats a short time.
func Millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// Speed formats the time of so many bytes, and their speed.
func Speed(bytes int64, d time.Duration) string {
	return fmt.Sprintf("%s (%.0f MB/s)", Seconds(d), float64(bytes)/1e6/d.Seconds())
}

// Ratio formats one figure divided by another.
func Ratio[N float64 | time.Duration](value, divisor N) string {
	return fmt.Sprintf("%.2f", float64(value)/float64(divisor))
}
