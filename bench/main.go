// Command bench measures Quern against the tools that a single machine offers,
// on the same files, in the same run, and prints medians and ratios.
//
//	go run ./bench [-size 1G] [-cores 2] [-runs 3] [-only REGEXP] [-dir DIR]
//
// It makes its input from a fixed seed, reads it once so that it is in the page
// cache, and runs ours and the peer's whole process in turn, A B A B …. Outputs
// are compared before a figure is printed. It asserts no timing.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == wordLoopVerb {
		exit(wordLoop(os.Args[2], os.Args[3]))
	}
	size := flag.String("size", "1G", "`bytes` of input, with K, M or G")
	cores := flag.Int("cores", runtime.NumCPU(), "map and reduce `slots`, and the cores that peers may use")
	runs := flag.Int("runs", 3, "runs of each command; the median is printed")
	only := flag.String("only", ".", "`regexp` of the benchmarks to run")
	dir := flag.String("dir", "", "working `directory`, kept; default: a temporary one, removed")
	flag.Parse()
	exit(run(*size, *cores, *runs, *only, *dir))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(size string, cores, runs int, only, dir string) error {
	bytes, err := input.Size(size)
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "quern-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	b := &bench{dir: dir, bytes: bytes, cores: cores, runs: runs}
	if err := b.prepare(); err != nil {
		return err
	}
	fmt.Printf("%s of input, %d cores, median of %d, go %s\n\n", size, cores, runs, runtime.Version())
	testbed.Table("benchmark", "quern", "peer", "ratio", "to reach")
	for _, c := range b.cases() {
		if !wanted.MatchString(c.name) {
			continue
		}
		row, err := c.run(b)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		testbed.Row(append([]string{c.name}, row...)...)
	}
	return nil
}
