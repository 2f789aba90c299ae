package program

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/mapreduce/internal/driver"
	"github.com/quernmr/quern/wire"
)

// remote is the cluster of a driver that a client has started. The client submits the jobs.
type remote struct {
	conn  *wire.Conn
	begin wire.DriveBegin
	ended chan struct{} // closed when the client's pipe has ended

	mu   sync.Mutex
	last int
	runs map[int]chan *wire.DriveEnded
	err  error // why the pipe ended
}

// connect opens the pipes to the client.
func connect() (*remote, error) {
	in, out := os.NewFile(3, "pipe from client"), os.NewFile(4, "pipe to client")
	keepPipes() // programs that the driver starts must not hold them open
	conn := wire.NewConn(in, out, func() error { return errors.Join(in.Close(), out.Close()) })
	if err := conn.Send(&wire.DriveHello{Protocol: wire.DriveProtocol}); err != nil {
		return nil, fmt.Errorf("reach the client: %w", err)
	}
	m, err := conn.Receive()
	if err != nil {
		return nil, fmt.Errorf("reach the client: %w", err)
	}
	begin, ok := m.(*wire.DriveBegin)
	if !ok {
		return nil, fmt.Errorf("the client sent an unexpected %T", m)
	}
	r := &remote{conn: conn, begin: *begin, ended: make(chan struct{}), runs: make(map[int]chan *wire.DriveEnded)}
	go r.receive()
	return r, nil
}

func (r *remote) receive() {
	defer close(r.ended)
	for {
		m, err := r.conn.Receive()
		ended, ok := m.(*wire.DriveEnded)
		if err == nil && !ok {
			err = fmt.Errorf("unexpected %T", m)
		}
		r.mu.Lock()
		if err != nil {
			r.err = err
			r.mu.Unlock()
			return
		}
		answer := r.runs[ended.Run]
		delete(r.runs, ended.Run)
		r.mu.Unlock()
		if answer != nil {
			answer <- ended
		}
	}
}

// Sessions implements [driver.Cluster].
func (r *remote) Sessions(*wire.Submission) (string, error) {
	if !r.begin.Sweep {
		return r.begin.Sessions, nil
	}
	return r.begin.Sessions, driver.Sweep(builtin.FileSystems(), strings.TrimSuffix(r.begin.Sessions, "/"), time.Now())
}

// Run implements [driver.Cluster].
func (r *remote) Run(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	return r.ask(ctx, &wire.DriveRun{Submission: *sub})
}

// Find implements [driver.Cluster].
func (r *remote) Find(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
	return r.ask(ctx, &wire.DriveRun{Submission: *sub, Find: true})
}

func (r *remote) ask(ctx context.Context, m *wire.DriveRun) ([]wire.EndedJob, error) {
	answer := make(chan *wire.DriveEnded, 1)
	r.mu.Lock()
	r.last++
	m.Run = r.last
	r.runs[m.Run] = answer
	r.mu.Unlock()
	if err := r.conn.Send(m); err != nil {
		return nil, fmt.Errorf("reach the client: %w", err)
	}
	interrupted := ctx.Done()
	for {
		select {
		case ended := <-answer:
			if ended.Error != "" {
				return nil, errors.New(ended.Error)
			}
			return ended.Jobs, nil
		case <-interrupted:
			interrupted = nil // wait for the killed jobs
			if err := r.conn.Send(&wire.DriveKill{Run: m.Run}); err != nil {
				return nil, fmt.Errorf("reach the client: %w", err)
			}
		case <-r.ended:
			r.mu.Lock()
			defer r.mu.Unlock()
			return nil, fmt.Errorf("the client has ended: %w", r.err)
		}
	}
}

// close ends the connection. It tells the client why the program fails, if it does; the client may have ended.
func (r *remote) close(failed error) error {
	if failed != nil {
		_ = r.conn.Send(&wire.DriveFailed{Error: wire.Truncate(failed.Error(), wire.MaxText)})
	}
	return r.conn.Close()
}
