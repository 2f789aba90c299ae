package hdfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
)

// Of many concurrent renames to one name, at most one succeeds, and none replaces an existing
// target.
func TestRenamesCompareAndSet(t *testing.T) {
	c := cluster(t)
	systems := []*hdfs.FS{client(t, c), client(t, c), client(t, c)}
	f, top := systems[0], newDir(t, c, systems[0])
	const rounds, racers = 12, 9
	for round := range rounds {
		dir := dfs.Join(top, fmt.Sprint(round))
		isFile, taken := round%2 == 0, round%4 >= 2
		if err := f.Mkdir(dir); err != nil {
			t.Fatal(err)
		}
		make := func(name, content string) {
			if isFile {
				write(t, f, name, []byte(content))
				return
			}
			if err := f.Mkdir(name); err != nil {
				t.Fatal(err)
			}
			write(t, f, dfs.Join(name, "id"), []byte(content))
		}
		target := dfs.Join(dir, "target")
		want := 1
		if taken {
			make(target, "first")
			want = 0
		}
		for i := range racers {
			make(dfs.Join(dir, fmt.Sprint(i)), fmt.Sprint(i))
		}
		errs := concurrently(racers, func(i int) error {
			from := dfs.Join(dir, fmt.Sprint(i))
			if isFile {
				return systems[i%3].RenameFile(from, target)
			}
			return systems[i%3].RenameDir(from, target)
		})
		winner := "first"
		for i, err := range errs {
			switch {
			case err == nil:
				want--
				winner = fmt.Sprint(i)
			case !errors.Is(err, fs.ErrExist):
				t.Errorf("round %d: %v", round, err)
			}
		}
		if want != 0 {
			t.Fatalf("round %d: %d too many renames have succeeded", round, -want)
		}
		for i := range racers {
			if name := fmt.Sprint(i); name != winner {
				checkContent(t, f, dfs.Join(dir, name), name, isFile)
			}
		}
		checkContent(t, f, target, winner, isFile)
	}
}

func concurrently(n int, do func(i int) error) []error {
	errs := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { errs[i] = do(i) })
	}
	wait.Wait()
	return errs
}

func checkContent(t *testing.T, f dfs.FS, name, content string, isFile bool) {
	t.Helper()
	if !isFile {
		name = dfs.Join(name, "id")
	}
	if got := string(read(t, f, name)); got != content {
		t.Errorf("%s has %q, want %q", name, got, content)
	}
}

// A rename replaces neither an empty directory nor a file.
func TestRenamesReplaceNothing(t *testing.T) {
	c := cluster(t)
	f := client(t, c)
	top := newDir(t, c, f)
	at := func(name string) string { return dfs.Join(top, name) }
	for _, name := range []string{"full", "empty"} {
		if err := f.Mkdir(at(name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, f, at("full/id"), []byte("1"))
	write(t, f, at("file"), []byte("2"))
	for _, to := range []string{"empty", "file", "full"} {
		if err := f.RenameDir(at("full"), at(to)); err == nil {
			t.Errorf("a directory was renamed to %s", to)
		}
		if err := f.RenameFile(at("file"), at(to)); err == nil {
			t.Errorf("a file was renamed to %s", to)
		}
	}
	if err := f.RenameFile(at("file"), "hdfs://elsewhere:1/x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("to another file system: %v", err)
	}
	checkContent(t, f, at("file"), "2", true)
	checkContent(t, f, at("full"), "1", false)
}
