package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
)

// numbered is a connection to a NameNode. Each call adds its number to calls and gets the next
// answer: an error, or whether a removed file existed. The last answer repeats.
type numbered struct {
	n       int
	cluster *cluster
	answers *[]any
	calls   *string
}

func (c numbered) Execute(_ string, _, resp proto.Message) error {
	*c.calls += fmt.Sprint(c.n)
	answer := (*c.answers)[0]
	*c.answers = (*c.answers)[min(1, len(*c.answers)-1):]
	if err, ok := answer.(error); ok {
		c.n++
		c.addTo()
		return err
	}
	proto.Merge(resp, message("DeleteResponse", "result", answer))
	return nil
}

// addTo makes the connection available to its cluster.
func (c numbered) addTo() {
	c.cluster.mu.Lock()
	defer c.cluster.mu.Unlock()
	c.cluster.clients = append(c.cluster.clients, &pooledConn{remote: c})
}

// TestRetries: a call is repeated, on another connection, if another NameNode or the same one
// later may answer it. A removal succeeds if an earlier call may have removed the file.
func TestRetries(t *testing.T) {
	answer := func(exception string) error { return refusal{rejected{exception, "x"}} }
	standby := answer("org.apache.hadoop.ipc.StandbyException")
	for what, c := range map[string]struct {
		answers []any
		want    error
		calls   string        // numbers of the connections
		took    time.Duration // about this long; 0: any time
		early   bool          // no NameNode has answered before
		unsent  bool          // the first connection fails
	}{
		"answer":               {answers: []any{true}, calls: "0"},
		"no file":              {answers: []any{false}, want: fs.ErrNotExist, calls: "0"},
		"final error":          {answers: []any{answer("java.io.FileNotFoundException")}, want: fs.ErrNotExist, calls: "0"},
		"standby":              {answers: []any{standby, true}, calls: "01"},
		"standby, no file":     {answers: []any{standby, false}, want: fs.ErrNotExist, calls: "01"},
		"overload":             {answers: []any{answer("org.apache.hadoop.ipc.RetriableException"), true}, calls: "01"},
		"safe mode":            {answers: []any{answer("org.apache.hadoop.hdfs.server.namenode.SafeModeException"), true}, calls: "01"},
		"lost answer":          {answers: []any{io.EOF, true}, calls: "01"},
		"lost answer, no file": {answers: []any{io.EOF, standby, false}, calls: "012"},
		"never sent, no file":  {answers: []any{false}, unsent: true, want: fs.ErrNotExist, calls: "0"},
		"no answer":            {answers: []any{io.EOF}, want: io.EOF, took: time.Minute},
		"wrong address":        {answers: []any{io.EOF}, early: true, want: io.EOF, took: 15 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := ""
				first := numbered{answers: &c.answers, calls: &calls}
				f := New(Options{User: "u", Dial: func(context.Context, string, string) (net.Conn, error) {
					first.addTo()
					return nil, errors.New("connection refused")
				}})
				defer f.Close()
				cluster, err := f.connectTo("nn")
				if err != nil {
					t.Fatal(err)
				}
				f.clusters["nn"], cluster.responded, first.cluster = cluster, !c.early, cluster
				if !c.unsent {
					first.addTo()
				}
				began := time.Now()
				if err := f.Remove("hdfs://nn/f"); !errors.Is(err, c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if took := time.Since(began); c.took > 0 && (took > c.took+2*time.Second || took < c.took-4*time.Second) {
					t.Errorf("it took %v, want about %v", took, c.took)
				}
				if c.took == 0 && calls != c.calls {
					t.Errorf("calls of the connections %s, want %s", calls, c.calls)
				}
			})
		})
	}
}

// TestLease: the lease is renewed while files are written, and not longer.
func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(fakeHDFS)
		_, c := newFakeHDFS(t, h, nil)
		for i, step := range []struct{ writers, renewals int }{{1, 3}, {1, 3}, {-1, 3}, {-1, 0}, {0, 0}, {1, 3}, {-1, 0}} {
			before := h.count("renewLease")
			c.addWriters(step.writers)
			<-time.After(3*leaseTime + time.Second)
			synctest.Wait()
			if n := h.count("renewLease") - before; n != step.renewals {
				t.Errorf("step %d: renewed %d times, want %d", i, n, step.renewals)
			}
		}
	})
}
