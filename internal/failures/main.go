// Failures prints what failed in the outputs of the steps of tools/check.sh, in a few lines, so
// that they can end a long log: each failed test with its messages, each race, panic and failed
// build.
//
//	go run ./internal/failures [-lines N] OUTPUT...
//
// Each OUTPUT is a file with the name of its step. A message keeps its first lines, without the
// lines of daemons' logs. With too many failures, messages become shorter, then failures are left
// out and counted. A step without a known failure ends with the last lines of its output.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	lines := flag.Int("lines", 28, "print at most `N` lines")
	flag.Parse()
	var all []failure
	for _, file := range flag.Args() {
		output, err := os.ReadFile(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, "failures:", err)
			os.Exit(1)
		}
		for _, f := range find(string(output)) {
			f.title = filepath.Base(file) + ": " + f.title
			all = append(all, f)
		}
	}
	fmt.Print(summary(all, *lines))
}
