package schedulers

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"strings"

	"github.com/quernmr/quern/bench/testbed"
)

// core runs the benchmark of package core, which needs no cluster.
func (b *bench) core() error {
	cmd := exec.CommandContext(b.Ctx, "go", "test", "github.com/quernmr/quern/jobtracker/core", "-run", "^$", "-cpu", "1", "-bench", "^BenchmarkAssign$")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	testbed.Table("fleet", "measured", "target")
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		name, figures, found := strings.Cut(lines.Text(), "\t")
		if !found || !strings.HasPrefix(name, "BenchmarkAssign/") {
			continue
		}
		testbed.Row(strings.TrimSpace(strings.TrimPrefix(name, "BenchmarkAssign/")), strings.Join(strings.Fields(figures)[1:], " "),
			"5,000 trackers: ≥ 200,000 core/s, p99 ≤ 1000 µs")
	}
	return nil
}
