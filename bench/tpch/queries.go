package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func (b *bench) program() string { return filepath.Join(b.dir, "tpch") }

func (b *bench) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.program(), "github.com/quernmr/quern/examples/tpch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build examples/tpch: %w\n%s", err, out)
	}
	return nil
}

// table prints a line for each query, and the sums.
func (b *bench) table(ctx context.Context, queries []int) error {
	fmt.Printf("TPC-H at scale %s, %d cores, median of %d\n\n", b.scale, b.cores, b.runs)
	head := "| query | quern |"
	for _, p := range b.peers {
		head += fmt.Sprintf(" %s | its query alone | %s / quern |", p.Name, p.Name)
	}
	fmt.Println(head)
	fmt.Println(strings.Repeat("|---", strings.Count(head, "|")-1) + "|")
	sum := newTimes(len(b.peers))
	for _, q := range queries {
		t, err := b.query(ctx, q)
		if err != nil {
			return fmt.Errorf("query %d: %w", q, err)
		}
		fmt.Println(t.row(fmt.Sprint(q)))
		sum.ours += t.ours
		for i := range b.peers {
			sum.whole[i] += t.whole[i]
			sum.alone[i] += t.alone[i]
		}
	}
	fmt.Println(sum.row("all"))
	return nil
}

// times are a query's, by peer.
type times struct {
	ours         time.Duration
	whole, alone []time.Duration
}

func newTimes(peers int) *times {
	return &times{whole: make([]time.Duration, peers), alone: make([]time.Duration, peers)}
}

func (t *times) row(name string) string {
	row := fmt.Sprintf("| %s | %.2f s |", name, t.ours.Seconds())
	for i := range t.whole {
		row += fmt.Sprintf(" %.2f s | %.2f s | %.2f |", t.whole[i].Seconds(), t.alone[i].Seconds(), t.whole[i].Seconds()/t.ours.Seconds())
	}
	return row
}

// query runs one in turn by us and each peer. Every answer must be the first
// peer's, which is DuckDB.
func (b *bench) query(ctx context.Context, q int) (*times, error) {
	var ours []time.Duration
	whole, alone := make([][]time.Duration, len(b.peers)), make([][]time.Duration, len(b.peers))
	for range b.runs {
		mine, took, err := b.once(ctx, q)
		if err != nil {
			return nil, err
		}
		ours = append(ours, took)
		var truth string
		for i, p := range b.peers {
			a, err := p.Ask(ctx, b.tables(), q, b.cores)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				truth = a.Lines
			} else if err := same(p.Name, a.Lines, truth); err != nil {
				return nil, err
			}
			whole[i], alone[i] = append(whole[i], a.Whole), append(alone[i], a.Query)
		}
		if err := same("quern", mine, truth); err != nil {
			return nil, err
		}
	}
	t := newTimes(len(b.peers))
	t.ours = median(ours)
	for i := range b.peers {
		t.whole[i], t.alone[i] = median(whole[i]), median(alone[i])
	}
	return t, nil
}

// once runs our program from a clean start and times its whole process.
func (b *bench) once(ctx context.Context, q int) (answer string, took time.Duration, err error) {
	out := filepath.Join(b.dir, "out")
	if err := os.RemoveAll(out); err != nil {
		return "", 0, err
	}
	unix.Sync() // an earlier run's dirty pages are not this run's work
	cmd := exec.CommandContext(ctx, b.program(), "-query", fmt.Sprint(q), "-tables", b.tables(), "-output", out,
		"-D", fmt.Sprintf("quern.embedded.slots=%d", b.cores), "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.cores))
	began := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said)
	}
	took = time.Since(began)
	answer, err = parts(out)
	return answer, took, err
}

// parts joins the part files below a directory, in the order of their names.
func parts(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "part-") {
			return err
		}
		content, err := os.ReadFile(path)
		all.Write(content)
		return err
	})
	return all.String(), err
}

func same(who, got, want string) error {
	if got == want {
		return nil
	}
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Errorf("line %d of %s's answer is not DuckDB's:\n%q\n%q", i+1, who, at(g, i), at(w, i))
		}
	}
	return nil
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
