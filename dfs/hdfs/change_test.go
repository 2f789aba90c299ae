package hdfs

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/synctest"
)

// TestAppend: appended bytes are in blocks of their own, also if a DataNode fails. A writer that gives up keeps the file as
// it was, with the whole blocks that it has appended.
func TestAppend(t *testing.T) {
	const block = 600 << 10
	for what, c := range map[string]struct {
		hdfs  *fakeHDFS
		size  int // of what is appended
		abort bool
		kept  int // bytes of it that stay
		left  int // blocks that are abandoned
	}{
		"no failure":       {hdfs: &fakeHDFS{nodes: 3}, size: block + 5, kept: block + 5},
		"node fails":       {hdfs: &fakeHDFS{nodes: 4, fails: nodeAt(1), room: 400 << 10, from: 3}, size: block + 5, kept: block + 5, left: 1},
		"nothing appended": {hdfs: &fakeHDFS{nodes: 3}},
		"aborted":          {hdfs: &fakeHDFS{nodes: 3}, size: packetSize, abort: true, left: 1},
		"aborted later":    {hdfs: &fakeHDFS{nodes: 3}, size: block + packetSize, abort: true, kept: block, left: 1},
		"aborted early":    {hdfs: &fakeHDFS{nodes: 3}, size: block + 5, abort: true, kept: block},
		"aborted at once":  {hdfs: &fakeHDFS{nodes: 3}, abort: true},
	} {
		inBubble(t, what, func(t *testing.T) {
			h := c.hdfs
			h.isFile = true
			f, _ := newFakeHDFS(t, h, Conf{"dfs.blocksize": "600k"})
			w, err := f.Create("hdfs://nn/f")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Append("hdfs://nn/f"); err == nil {
				t.Error("the file is written and appended to at the same time")
			}
			all := pattern(block + 100 + c.size)
			before, more := all[:block+100], all[block+100:]
			if _, err := w.Write(before); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if w, err = f.Append("hdfs://nn/f"); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(more); err != nil {
				t.Fatal(err)
			}
			end := w.Close
			synctest.Wait() // until the full packets are sent
			if c.abort {
				end = w.Abort
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if got, want := h.content(t), slices.Concat(before, more[:c.kept]); !bytes.Equal(got, want) {
				t.Errorf("the file has %d bytes in blocks %v, want %d", len(got), h.blocks, len(want))
			}
			if n := h.count("abandonBlock"); n != c.left {
				t.Errorf("%d blocks are abandoned, want %d", n, c.left)
			}
			if n := h.count("complete"); n != 2 || h.count("delete") > 0 {
				t.Errorf("%d requests to complete the file, %d to remove it", n, h.count("delete"))
			}
		})
	}
}

// TestAppendMissing: a missing file is not made.
func TestAppendMissing(t *testing.T) {
	f, _ := newFakeHDFS(t, &fakeHDFS{nodes: 3}, nil)
	if _, err := f.Append("hdfs://nn/f"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
