package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/integration/tpch/peers"
)

// engine answers queries.
type engine struct {
	name  string
	cores string // how it is told of them
	ask   func(ctx context.Context, query int) (*peers.Answer, error)
}

func (b *bench) peer(p *peers.Peer, cores string) engine {
	return engine{p.Name, cores, func(ctx context.Context, query int) (*peers.Answer, error) {
		unix.Sync() // dirty pages of the run before are not this run's work
		return p.Ask(ctx, b.tables(), query, b.cores)
	}}
}

func (b *bench) quern() engine {
	cores := fmt.Sprintf("%d slots, of maps and of reduces, and %d reduces", b.cores, b.cores)
	return engine{"quern", cores, b.once}
}

func (b *bench) program() string { return filepath.Join(b.dir, "tpch") }

func (b *bench) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.program(), "github.com/quernmr/quern/examples/tpch")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build examples/tpch: %w\n%s", err, out)
	}
	return nil
}

// once runs our program from a clean start and times its whole process.
func (b *bench) once(ctx context.Context, query int) (*peers.Answer, error) {
	out := filepath.Join(b.dir, "out")
	if err := os.RemoveAll(out); err != nil {
		return nil, err
	}
	unix.Sync() // as before a peer
	cmd := exec.CommandContext(ctx, b.program(), "-query", fmt.Sprint(query), "-tables", b.tables(), "-output", out,
		"-D", fmt.Sprintf("quern.embedded.slots=%d", b.cores), "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.cores))
	began := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said)
	}
	took := time.Since(began)
	lines, err := parts(out)
	return &peers.Answer{Lines: lines, Whole: took}, err
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
