package peers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/integration/cache"
)

// ErrUnavailable reports that a peer is not available on this machine.
var ErrUnavailable = errors.New("the peer is not available")

// DuckDB returns DuckDB. Its virtual environment also has the generator of tables.
func DuckDB(ctx context.Context) (*Peer, error) {
	return fetch(ctx, "duckdb", "duckdb==2.0.0", "tpchgen-cli==4.0.0")
}

// Spark returns Spark, a download of 550 MB that needs Java.
func Spark(ctx context.Context) (*Peer, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return nil, fmt.Errorf("%w: Spark needs Java: %w", ErrUnavailable, err)
	}
	return fetch(ctx, "spark", "pyspark==4.3.0")
}

// Mrjob returns mrjob, which runs programs and answers no queries.
func Mrjob(ctx context.Context) (*Peer, error) {
	return fetch(ctx, "mrjob", "mrjob==0.7.4", "setuptools==80.9.0")
}

const fetchWait = 8 * time.Minute

// fetch returns a peer's virtual environment from the cache, or creates it with pip. The cache
// renames the directory after that. Python and native programs in it still work.
func fetch(ctx context.Context, name string, packages ...string) (*Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	dir, err := cache.Dir(name, strings.Join(packages, "\n"), func(dir string) error {
		if err := ready(ctx); err != nil {
			return err
		}
		for _, step := range [][]string{
			{"python3", "-m", "venv", dir},
			append([]string{filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"}, packages...),
		} {
			if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, out)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return &Peer{Name: name, Packages: packages, dir: dir}, nil
}

// ready finds Python with virtual environments. It installs them only with CI=true, as root.
func ready(ctx context.Context) error {
	found := exec.CommandContext(ctx, "python3", "-c", "import ensurepip, venv").Run()
	if found != nil && os.Getenv("CI") == "true" && os.Getuid() == 0 {
		install := "apt-get update -q && apt-get install -qy --no-install-recommends python3-venv"
		if out, err := exec.CommandContext(ctx, "sh", "-c", install).CombinedOutput(); err != nil {
			return fmt.Errorf("install Python: %w\n%s", err, out)
		}
		found = exec.CommandContext(ctx, "python3", "-c", "import ensurepip, venv").Run()
	}
	if found != nil {
		return fmt.Errorf("not installed: python3-venv: %w", found)
	}
	return nil
}
