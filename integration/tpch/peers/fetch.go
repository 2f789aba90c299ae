package peers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrUnavailable reports that a peer cannot be had on this machine.
var ErrUnavailable = errors.New("the peer cannot be had here")

// DuckDB makes DuckDB available, and the generator of tables.
func DuckDB(ctx context.Context) (*Peer, error) {
	return fetch(ctx, "duckdb", "duckdb==2.0.0", "tpchgen-cli==4.0.0")
}

// Spark makes Spark available, which is 550 MB and needs Java.
func Spark(ctx context.Context) (*Peer, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return nil, fmt.Errorf("%w: Spark needs Java: %w", ErrUnavailable, err)
	}
	return fetch(ctx, "spark", "pyspark==4.3.0")
}

const fetchWait = 8 * time.Minute

// fetch gives the virtual environment with these packages: from the cache, which
// is $QUERN_CACHE, or quern in the user's cache directory, or by pip.
func fetch(ctx context.Context, name string, packages ...string) (*Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	cache := os.Getenv("QUERN_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		cache = filepath.Join(user, "quern")
	}
	// Another list of packages is another directory.
	sum := sha256.Sum256([]byte(strings.Join(packages, "\n")))
	dir := filepath.Join(cache, fmt.Sprintf("%s-%x", name, sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return &Peer{name, dir}, nil
	}
	if err := ready(ctx); err != nil {
		return nil, err
	}
	if err := fill(ctx, cache, dir, packages); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return &Peer{name, dir}, nil
}

// fill makes the directory under another name and renames it: of several that do
// so at the same time one wins, and all may use what is there then. What is used of
// it, Python and a program of machine code, does not mind.
func fill(ctx context.Context, cache, dir string, packages []string) error {
	if err := os.MkdirAll(cache, 0o777); err != nil {
		return err
	}
	fresh, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	for _, step := range [][]string{
		{"python3", "-m", "venv", fresh},
		append([]string{filepath.Join(fresh, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"}, packages...),
	} {
		if out, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, out)
		}
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(dir); there != nil {
			return err
		}
	}
	return nil
}

// ready looks for Python with what makes virtual environments. Only a machine of
// continuous integration is changed for it.
func ready(ctx context.Context) error {
	found := exec.CommandContext(ctx, "python3", "-c", "import ensurepip, venv").Run()
	if found != nil && os.Getenv("CI") == "true" && os.Getuid() == 0 {
		install := "apt-get update -q && apt-get install -qy --no-install-recommends python3-venv"
		if out, err := exec.CommandContext(ctx, "sh", "-c", install).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: install Python: %w\n%s", ErrUnavailable, err, out)
		}
		found = exec.CommandContext(ctx, "python3", "-c", "import ensurepip, venv").Run()
	}
	if found != nil {
		return fmt.Errorf("%w: not installed: python3-venv: %w", ErrUnavailable, found)
	}
	return nil
}
