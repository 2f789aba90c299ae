package hdfs

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
)

// pattern returns bytes without a short period.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16 ^ i>>8 ^ i)
	}
	return b
}

// TestWrite: a file is complete although DataNodes fail. A failed block is no part of it, and
// the DataNode that has failed gets no more blocks.
func TestWrite(t *testing.T) {
	const block = 600 << 10
	for what, c := range map[string]struct {
		hdfs     *fakeHDFS
		bad      []string // DataNodes that have failed before
		excluded []string // for the last block
		abandons int
	}{
		"no failure":        {hdfs: &fakeHDFS{nodes: 3}},
		"first node fails":  {hdfs: &fakeHDFS{nodes: 4, fails: nodeAt(1), room: 400 << 10, from: 2}, excluded: []string{nodeAt(1)}, abandons: 1},
		"second node fails": {hdfs: &fakeHDFS{nodes: 4, fails: nodeAt(2), room: 400 << 10}, excluded: []string{nodeAt(2)}, abandons: 1},
		"fails at the end":  {hdfs: &fakeHDFS{nodes: 4, fails: nodeAt(2), from: 2}, excluded: []string{nodeAt(2)}, abandons: 1},
		"cannot be reached": {hdfs: &fakeHDFS{nodes: 4, refuses: nodeAt(2)}, excluded: []string{nodeAt(2)}, abandons: 1},
		"all failed before": {hdfs: &fakeHDFS{nodes: 2}, bad: []string{nodeAt(1), nodeAt(2)}},
		"another fails":     {hdfs: &fakeHDFS{nodes: 4, fails: nodeAt(2), room: 1}, bad: []string{nodeAt(1)}, excluded: []string{nodeAt(1), nodeAt(2)}, abandons: 1},
		"confirmed late":    {hdfs: &fakeHDFS{nodes: 3, answers: map[string][]bool{"complete": {false, false}}}},
	} {
		t.Run(what, func(t *testing.T) {
			h := c.hdfs
			late := len(h.answers["complete"])
			f, cluster := newFakeHDFS(t, h, Conf{"dfs.blocksize": "600k"})
			for i := range h.nodes {
				if slices.Contains(c.bad, nodeAt(i+1)) {
					cluster.badNodes[nodeAt(i+1)] = badNode{h.node(i + 1), time.Now()}
				}
			}
			w, err := f.Create("hdfs://nn/f")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Create("hdfs://nn/f"); !errors.Is(err, fs.ErrExist) {
				t.Errorf("a second writer: %v", err)
			}
			want := pattern(2*block + block/2)
			for rest := want; len(rest) > 0; rest = rest[min(100_000, len(rest)):] {
				if _, err := w.Write(rest[:min(100_000, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got := h.content(t); !bytes.Equal(got, want) {
				t.Errorf("the file has %d bytes in blocks %v, want %d", len(got), h.blocks, len(want))
			}
			slices.Sort(h.excluded)
			if n := h.count("abandonBlock"); n != c.abandons || len(c.bad) < h.nodes && !slices.Equal(h.excluded, c.excluded) {
				t.Errorf("%d blocks abandoned, want %d; excluded are %q, want %q", n, c.abandons, h.excluded, c.excluded)
			}
			if n := h.count("complete"); n != 1+late {
				t.Errorf("%d requests to complete the file, want %d", n, 1+late)
			}
			if w, err = f.Create("hdfs://nn/f"); err != nil {
				t.Fatalf("after the end of the first writer: %v", err)
			}
			if err := w.Abort(); err != nil || h.count("delete") != 1 {
				t.Errorf("aborted: %v", err)
			}
		})
	}
}

// TestExcludedForTime: a DataNode that has failed gets blocks again after a time.
func TestExcludedForTime(t *testing.T) {
	h := &fakeHDFS{nodes: 2}
	_, c := newFakeHDFS(t, h, nil)
	c.badNodes[nodeAt(1)] = badNode{h.node(1), time.Now().Add(-2 * badNodeTime)}
	c.badNodes[nodeAt(2)] = badNode{h.node(2), time.Now()}
	if nodes := c.excluded(); len(nodes) != 1 || c.nodeAddr(nodes[0]) != nodeAt(2) || len(c.badNodes) != 1 {
		t.Errorf("excluded are %v", nodes)
	}
}

// TestWriteLargeBlock: a block that is too large to be kept is not written again. A file with a
// failed write is removed.
func TestWriteLargeBlock(t *testing.T) {
	h := &fakeHDFS{nodes: 3, fails: nodeAt(1), room: maxKept + 1<<20}
	f, _ := newFakeHDFS(t, h, Conf{"dfs.blocksize": "64m"})
	w, err := f.Create("hdfs://nn/f")
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 1<<20)
	for err == nil && h.count("abandonBlock") == 0 {
		_, err = w.Write(data)
	}
	if err == nil || !strings.Contains(err.Error(), "cannot write a block again") {
		t.Errorf("the write fails with %v", err)
	}
	if again := w.Close(); again == nil || !strings.Contains(again.Error(), "cannot write a block again") {
		t.Errorf("Close fails with %v", again)
	}
	if h.count("complete") > 0 || h.count("delete") != 1 {
		t.Errorf("calls are %q", h.calls)
	}
}

// TestNames: a rename does not replace its target. New files and directories have the permissions that
// settings or the umask in Hadoop's configuration allow; private ones are open to the user alone.
func TestNames(t *testing.T) {
	h := &fakeHDFS{}
	f, _ := newFakeHDFS(t, h, nil)
	for _, rename := range []func(from, to string) error{f.RenameFile, f.RenameDir} {
		h.existing["/to"] = false
		if err := rename("hdfs://nn/from", "hdfs://nn/to"); err != nil {
			t.Error(err)
		}
		if err := rename("hdfs://nn/from", "hdfs://nn/to"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("onto an existing one: %v", err)
		}
	}
	h2 := &fakeHDFS{}
	masked, _ := newFakeHDFS(t, h2, Conf{"fs.permissions.umask-mode": "027"})
	for _, c := range []struct {
		h    *fakeHDFS
		f    dfs.FS
		want []uint64
	}{
		{h, f, []uint64{0o755, 0o755, 0o644}},
		{h, dfs.Private(f), []uint64{0o700, 0o700, 0o600}},
		{h, dfs.Creating(f, dfs.Creation{Allowed: 0o775}), []uint64{0o775, 0o775, 0o664}},
		{h2, masked, []uint64{0o750, 0o750, 0o640}},
		{h2, dfs.Creating(masked, dfs.Creation{Replication: 2}), []uint64{0o750, 0o750, 0o640}},
		{h2, dfs.Creating(masked, dfs.Creation{Allowed: 0o777}), []uint64{0o777, 0o777, 0o666}},
		{h2, dfs.Private(masked), []uint64{0o700, 0o700, 0o600}},
	} {
		h, fsys, want := c.h, c.f, c.want
		h.modes, h.existing["/a"] = nil, false
		err := errors.Join(fsys.Mkdir("hdfs://nn/a"), fsys.MkdirAll("hdfs://nn/b"))
		w, createErr := fsys.Create("hdfs://nn/c")
		if err = errors.Join(err, createErr); err != nil {
			t.Fatal(err)
		}
		if err := w.Abort(); err != nil || !slices.Equal(h.modes, want) {
			t.Errorf("modes are %o, want %o; %v", h.modes, want, err)
		}
	}
}

// TestCreating: a file's replication and size of blocks come from settings, else from Hadoop's configuration,
// else from the NameNode.
func TestCreating(t *testing.T) {
	for _, c := range []struct {
		settings dfs.Creation
		conf     Conf
		want     [2]uint64
	}{
		{dfs.Creation{}, nil, [2]uint64{2, 1 << 20}},
		{dfs.Creation{}, Conf{"dfs.replication": "3", "dfs.blocksize": "4m"}, [2]uint64{3, 4 << 20}},
		{dfs.Creation{Replication: 1}, Conf{"dfs.replication": "3", "dfs.blocksize": "4m"}, [2]uint64{1, 4 << 20}},
		{dfs.Creation{BlockSize: 2 << 20}, Conf{"dfs.replication": "3", "dfs.blocksize": "4m"}, [2]uint64{3, 2 << 20}},
	} {
		h := &fakeHDFS{}
		f, _ := newFakeHDFS(t, h, c.conf)
		w, err := dfs.Creating(f, c.settings).Create("hdfs://nn/f")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Abort(); err != nil || h.created != c.want {
			t.Errorf("%+v with %v: %d, %v, want %d", c.settings, c.conf, h.created, err, c.want)
		}
	}
	f, _ := newFakeHDFS(t, &fakeHDFS{}, Conf{"fs.permissions.umask-mode": "u+rwx"})
	if _, err := f.Create("hdfs://nn/f"); !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), "umask-mode") {
		t.Errorf("a umask that is none: %v", err)
	}
	for _, name := range []string{"dfs.blocksize", "dfs.replication"} {
		f, _ := newFakeHDFS(t, &fakeHDFS{}, Conf{name: "many"})
		if _, err := f.Create("hdfs://nn/f"); !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s that is no number: %v", name, err)
		}
	}
}
