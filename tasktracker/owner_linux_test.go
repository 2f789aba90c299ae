package tasktracker

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// usersFS notes which user opens a file.
type usersFS struct {
	dfs.FS
	user   string
	mu     *sync.Mutex
	opened map[string]string // user by file
}

var _ dfs.Users = usersFS{}

func (f usersFS) ActAs(user string) dfs.FS               { f.user = user; return f }
func (f usersFS) ActOnceAs(user string) (dfs.FS, func()) { return f.ActAs(user), func() {} }
func (f usersFS) Owner(string) (string, error)           { return "", nil }
func (f usersFS) Share(string, uint32) error             { return nil }
func (f usersFS) MakeOwn(string) error                   { return nil }

func (f usersFS) Open(name string) (dfs.File, error) {
	if f.user == "eve" {
		return nil, fmt.Errorf("%w: User: quern is not allowed to impersonate eve", dfs.ErrActAs)
	}
	f.mu.Lock()
	f.opened[name] = f.user
	f.mu.Unlock()
	return f.FS.Open(name)
}

// TestStagedAsOwner: with -hdfs-as-owner, a task tracker reads staged files as the job's owner. It
// refuses jobs that were staged as another user than it reads as, and names the flag.
func TestStagedAsOwner(t *testing.T) {
	for i, c := range []struct {
		asOwner bool
		in      string // user with the submission in their directory; empty: it is in the common one
		want    string // error
	}{
		{asOwner: true, in: "ann"},
		{asOwner: true, in: "eve", want: "not allowed to impersonate eve"},
		{asOwner: true, want: "start all job trackers with -hdfs-as-owner"},
		{asOwner: true, in: "bob", want: "start all job trackers with -hdfs-as-owner"},
		{in: "ann", want: "start this task tracker with -hdfs-as-owner"},
		{},
	} {
		f := usersFS{FS: local.FS{}, mu: new(sync.Mutex), opened: make(map[string]string)}
		l := startContained(t, Config{FS: f, HDFS: HDFS{AsOwner: c.asOwner}})
		if c.in != "" {
			dir := strings.TrimPrefix(l.staging, "file://")
			moved := strings.TrimPrefix(wire.UserStaging("file://"+filepath.Dir(dir), c.in), "file://")
			if err := os.MkdirAll(moved, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir, filepath.Join(moved, fmt.Sprint("KEY", i))); err != nil {
				t.Fatal(err)
			}
			l.staging = "file://" + filepath.Join(moved, fmt.Sprint("KEY", i))
		}
		id := l.launchAs(wire.TaskID{Job: job1, Kind: wire.Map}, wire.Launch{Index: doSucceed, Owner: map[bool]string{true: "eve", false: "ann"}[c.in == "eve"]})
		if c.want != "" {
			if r := l.final(id, wire.AttemptFailed); !r.Fatal || !strings.Contains(r.Error, c.want) {
				t.Errorf("%+v: %q, fatal %t", c, r.Error, r.Fatal)
			}
			continue
		}
		l.final(id, wire.AttemptSucceeded)
		f.mu.Lock()
		for _, name := range slices.Sorted(maps.Keys(f.opened)) {
			if f.opened[name] != c.in && dfs.Base(dfs.Dir(name)) != wire.StagingClusters {
				t.Errorf("%+v: %s is opened as %q", c, name, f.opened[name])
			}
		}
		if len(f.opened) < 2 {
			t.Errorf("%+v: opened %v", c, f.opened)
		}
		f.mu.Unlock()
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	}
}
