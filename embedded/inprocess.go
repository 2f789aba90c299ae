//go:build unix

package embedded

import (
	"context"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// inProcess starts workers as goroutines of this process. They run the worker loop of
// package runtime over an in-memory pipe.
type inProcess struct {
	load runtime.Load
	fs   dfs.FS
}

// Start implements [workers.Starter].
func (p *inProcess) Start(*workers.Program, string) (workers.Worker, error) {
	ctx, cancel := context.WithCancel(context.Background())
	trackerEnd, workerEnd := wire.Pipe()
	w := &inProcessWorker{conn: trackerEnd, cancel: cancel, done: make(chan error, 1)}
	go func() {
		w.done <- runtime.Serve(ctx, workerEnd, p.load, p.fs, runtime.Options{InProcess: true})
	}()
	return w, nil
}

// inProcessWorker is a worker in a goroutine, which cannot be killed. Kill cancels its
// context and closes its pipe, so that the attempt ends at its next record.
type inProcessWorker struct {
	conn   *wire.Conn
	cancel context.CancelFunc
	done   chan error
}

func (w *inProcessWorker) Conn() *wire.Conn { return w.conn }

func (w *inProcessWorker) Kill() {
	w.cancel()
	w.conn.Close()
}

func (w *inProcessWorker) Wait() error {
	defer w.cancel()
	return <-w.done
}
