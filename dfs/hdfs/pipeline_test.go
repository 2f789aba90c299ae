package hdfs

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// inBubble runs a test that fails if it leaves goroutines behind. Its clock does not wait.
func inBubble(t *testing.T, name string, test func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// TestWriteAhead: the caller goes on while the DataNodes do not receive, in limited memory.
func TestWriteAhead(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		h := &fakeHDFS{nodes: 2, stalled: make(chan struct{})}
		f, _ := newFakeHDFS(t, h, Conf{"dfs.blocksize": "64m"})
		w, err := f.Create("hdfs://nn/f")
		if err != nil {
			t.Fatal(err)
		}
		want := pattern((maxQueued + 1) * packetSize)
		if _, err := w.Write(want); err != nil { // one packet is being sent, the others are in the queue
			t.Fatal(err)
		}
		more, written := pattern(2*packetSize), make(chan error)
		go func() {
			_, err := w.Write(more)
			written <- err
		}()
		synctest.Wait()
		select {
		case err := <-written:
			t.Fatalf("more than the queue has room for is taken: %v", err)
		default:
		}
		close(h.stalled)
		if err := errors.Join(<-written, w.Close()); err != nil {
			t.Fatal(err)
		}
		if got := h.content(t); !bytes.Equal(got, append(want, more...)) {
			t.Errorf("the file has %d bytes", len(got))
		}
	})
}

// TestWriteFails: a failure behind the caller's back reaches the next Write, or else Close. No file is completed, and
// no goroutine is left (see inBubble).
func TestWriteFails(t *testing.T) {
	for what, c := range map[string]struct {
		hdfs *fakeHDFS
		size int // of the file
		want error
	}{
		"no DataNode, in Write":         {&fakeHDFS{}, 200 * packetSize, syscall.ENOSPC},
		"no DataNode, in Close":         {&fakeHDFS{}, 5, syscall.ENOSPC},
		"all replicas fail, in Write":   {&fakeHDFS{nodes: 1, fails: nodeAt(1), room: 1}, 200 * packetSize, nil},
		"all replicas fail, in Close":   {&fakeHDFS{nodes: 1, fails: nodeAt(1)}, 5, nil},
		"connection breaks, in Write":   {&fakeHDFS{nodes: 1, fails: nodeAt(1), room: 1, silent: true}, 200 * packetSize, nil},
		"connection breaks, in Close":   {&fakeHDFS{nodes: 1, fails: nodeAt(1), silent: true}, 5, nil},
		"connection breaks in the last": {&fakeHDFS{nodes: 1, fails: nodeAt(1), from: 2, silent: true}, 1<<20 + 5, nil},
	} {
		inBubble(t, what, func(t *testing.T) {
			f, _ := newFakeHDFS(t, c.hdfs, nil)
			w, err := f.Create("hdfs://nn/f")
			if err != nil {
				t.Fatal(err)
			}
			_, writeErr := w.Write(pattern(c.size))
			if inWrite := c.size > maxQueued*packetSize; (writeErr != nil) != inWrite {
				t.Errorf("Write fails with %v", writeErr)
			}
			if _, err := w.Write(pattern(1)); writeErr != nil && (err == nil || err.Error() != writeErr.Error()) {
				t.Errorf("after %v the next Write fails with %v", writeErr, err)
			}
			err = w.Close()
			if err == nil || !errors.Is(err, c.want) && c.want != nil {
				t.Errorf("Close fails with %v", err)
			}
			if c.hdfs.count("complete") > 0 || c.hdfs.count("delete") != 1 {
				t.Errorf("calls are %q", c.hdfs.calls)
			}
		})
	}
}

// TestAbortWhileSending: Abort and the end of the FS do not wait for DataNodes.
func TestAbortWhileSending(t *testing.T) {
	for what, closeFS := range map[string]bool{"abort": false, "FS closed": true} {
		inBubble(t, what, func(t *testing.T) {
			h := &fakeHDFS{nodes: 2, stalled: make(chan struct{})}
			f, _ := newFakeHDFS(t, h, nil)
			w, err := f.Create("hdfs://nn/f")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(pattern(10 * packetSize)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // until a packet is being sent
			if closeFS {
				f.Close()
			}
			_ = w.Abort() // a closed FS cannot remove the file
			if calls := h.count("complete"); calls > 0 || !closeFS && h.count("delete") != 1 {
				t.Errorf("calls are %q", h.calls)
			}
			close(h.stalled)
		})
	}
}

// TestWriteAnyhow: whatever the sizes of writes and blocks, and whichever DataNode fails, the file's blocks have the bytes
// in their order.
func TestWriteAnyhow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		block := 4096 * rapid.IntRange(1, 60).Draw(rt, "block size in pages")
		size := rapid.IntRange(0, 5*block).Draw(rt, "size")
		longest := rapid.IntRange(1, 3*packetSize).Draw(rt, "longest write")
		h := &fakeHDFS{nodes: 4, from: rapid.IntRange(1, 6).Draw(rt, "first block that fails"),
			room: rapid.IntRange(0, block).Draw(rt, "room"), silent: rapid.Bool().Draw(rt, "silent")}
		if n := rapid.IntRange(0, 4).Draw(rt, "DataNode that fails"); n > 0 {
			h.fails = nodeAt(n)
		}
		seed := rapid.Int64().Draw(rt, "seed")
		if err := writeAnyhow(t, h, block, size, longest, seed); err != nil {
			rt.Fatal(err)
		}
	})
}

func writeAnyhow(t *testing.T, h *fakeHDFS, block, size, longest int, seed int64) (err error) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newFakeHDFS(t, h, Conf{"dfs.blocksize": fmt.Sprint(block)})
		w, createErr := f.Create("hdfs://nn/f")
		if err = createErr; err != nil {
			return
		}
		want, random := pattern(size), rand.New(rand.NewPCG(uint64(seed), 0))
		for rest := want; len(rest) > 0; {
			piece := bytes.Clone(rest[:min(1+random.IntN(longest), len(rest))])
			rest = rest[len(piece):]
			if _, err = w.Write(piece); err != nil {
				return
			}
			clear(piece) // the caller may use it again
		}
		if err = w.Close(); err != nil {
			return
		}
		err = h.isCut(want, block)
	})
	return err
}

// isCut checks that blocks have the content, cut at multiples of the block size, and that the NameNode knows their lengths.
func (h *fakeHDFS) isCut(content []byte, size int) error {
	if want := (len(content) + size - 1) / size; len(h.blocks) != want {
		return fmt.Errorf("the file has %d blocks, want %d", len(h.blocks), want)
	}
	for i, id := range h.blocks {
		want := content[i*size : min((i+1)*size, len(content))]
		if !bytes.Equal(h.data[id], want) || h.lengths[id] != uint64(len(want)) {
			return fmt.Errorf("block %d has %d bytes, %d for the NameNode, want %d", i, len(h.data[id]), h.lengths[id], len(want))
		}
	}
	return nil
}
