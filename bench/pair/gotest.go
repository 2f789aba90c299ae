package pair

import (
	"cmp"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/quernmr/quern/bench/testbed"
)

// benchmarks builds a package's tests in both revisions and compares its benchmarks.
func (b *bench) benchmarks() error {
	if b.goBench == "" {
		testbed.Row("go test -bench", "–", "–", "–", "–", "-bench names none")
		return nil
	}
	var runs [2]func() (measured, error)
	for k, r := range b.revisions {
		path := b.goPackage[k]
		if k == 0 {
			path = cmp.Or(path, b.goPackage[1])
		}
		program := filepath.Join(r.programs, "package.test")
		build := exec.CommandContext(b.Ctx, "go", "test", "-c", "-trimpath", "-buildvcs=false", "-o", program, "./"+path)
		build.Dir = r.tree
		if printed, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build the tests of %s in %s: %w\n%s", path, r.tree, err, printed)
		}
		runs[k] = func() (measured, error) {
			run := exec.CommandContext(b.Ctx, program, "-test.run", "^$", "-test.bench", b.goBench, "-test.benchtime", b.goTime, "-test.cpu", "1", "-test.timeout", "0")
			run.Dir = filepath.Join(r.tree, path)
			printed, err := run.CombinedOutput()
			if err != nil {
				return nil, fmt.Errorf("%s in %s: %w\n%s", b.goBench, run.Dir, err, printed)
			}
			figures := readBenchmarks(string(printed))
			if len(figures) == 0 {
				return nil, fmt.Errorf("-bench %s matches no benchmark in %s", b.goBench, run.Dir)
			}
			return figures, nil
		}
	}
	return b.compare(1, runs[0], runs[1])
}

// readBenchmarks reads lines such as BenchmarkPlan/jobs=10  5  123 ns/op  4.5 plans/s.
func readBenchmarks(printed string) measured {
	figures := make(measured)
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if x, err := strconv.ParseFloat(fields[i], 64); err == nil {
				figures[fields[0]+", "+fields[i+1]] = x
			}
		}
	}
	return figures
}
