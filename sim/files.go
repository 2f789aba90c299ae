package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

const blockSize = 40

// newFiles returns the cluster's file system with the parent directories.
func newFiles() *mem.FS {
	fs := mem.New(blockSize)
	for _, dir := range []string{clusterStaging + "/" + wire.StagingClusters, "mem://c/in", "mem://c/out"} {
		if err := fs.MkdirAll(dir); err != nil {
			panic(err)
		}
	}
	return fs
}

// processFS is a worker process's view of the file system: each relevant call waits until the
// simulation carries it out.
type processFS struct{ p *worker }

// fileCall is one call.
type fileCall struct {
	op, name, to string
	do           func() error
}

func (c *fileCall) String() string {
	if c.to != "" {
		return fmt.Sprintf("%s %s to %s", c.op, c.name, c.to)
	}
	return c.op + " " + c.name
}

// errDead is the result of a dead process's calls.
var errDead = errors.New("the process is dead")

func (f *processFS) call(op, name, to string, do func() error) error {
	if f.p.dead.Load() {
		return errDead
	}
	f.p.parked <- parked{call: &fileCall{op, name, to, do}}
	return <-f.p.answer
}

// call carries out a worker's call after a while, and lets the worker go on.
func (p *worker) call(c *fileCall) {
	w := p.w
	d := slowed(w.upTo(w.callTime), p.tt.machine.calls)
	if w.fault(w.rates.slowFiles) {
		d += w.upTo(3 * time.Second)
	}
	if c.op == "renamedir" && w.fault(w.rates.atCommits) {
		d += w.upTo(12 * time.Second)
		w.strikeAtCommit(p.tt, p)
	}
	p.later(d, func() {
		if p.pending != c {
			return
		}
		var err error
		switch {
		case w.refuses(p.run, c), p.tt.machine.refusesCalls:
			err = fmt.Errorf("%s: %w", c.op, errFault)
		case w.fault(w.rates.files):
			err = fmt.Errorf("%s: %w", c.op, errFault)
			if w.chance(0.5) { // the call is carried out, but reported as failed
				_ = p.carryOut(c)
			}
		default:
			err = p.carryOut(c)
		}
		p.pending = nil
		p.answer <- err
		p.wait()
	})
}

// carryOut changes the file system, and records commits.
func (p *worker) carryOut(c *fileCall) error {
	w := p.w
	if c.op == "renamedir" && w.sabotage == replaceTargets {
		_ = w.fs.RemoveAll(c.to)
	}
	err := c.do()
	if c.op == "renamedir" {
		w.note("%v: %v", c, err)
		w.countPublished(c.to, err)
	}
	if err == nil && c.op == "renamedir" {
		w.book.checkRename(p, c.name, c.to)
	}
	return err
}

func (f *processFS) fs() dfs.FS { return f.p.w.fs }

func (f *processFS) Open(name string) (file dfs.File, err error) {
	err = f.call("open", name, "", func() error {
		file, err = f.fs().Open(name)
		return err
	})
	return file, err
}

func (f *processFS) Create(name string) (dfs.Writer, error) {
	var out dfs.Writer
	err := f.call("create", name, "", func() (err error) {
		out, err = f.fs().Create(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &processWriter{f, name, out}, nil
}

func (f *processFS) Mkdir(name string) error {
	return f.call("mkdir", name, "", func() error { return f.fs().Mkdir(name) })
}

func (f *processFS) MkdirAll(name string) error {
	return f.call("mkdirall", name, "", func() error { return f.fs().MkdirAll(name) })
}

func (f *processFS) SyncDir(name string) error {
	return f.call("syncdir", name, "", func() error { return f.fs().SyncDir(name) })
}

func (f *processFS) Stat(name string) (info dfs.Info, err error) {
	err = f.call("stat", name, "", func() error {
		info, err = f.fs().Stat(name)
		return err
	})
	return info, err
}

func (f *processFS) List(name string) (infos []dfs.Info, err error) {
	err = f.call("list", name, "", func() error {
		infos, err = f.fs().List(name)
		return err
	})
	return infos, err
}

func (f *processFS) RenameFile(from, to string) error {
	return f.call("renamefile", from, to, func() error { return f.fs().RenameFile(from, to) })
}

func (f *processFS) RenameDir(from, to string) error {
	return f.call("renamedir", from, to, func() error { return f.fs().RenameDir(from, to) })
}

func (f *processFS) Remove(name string) error {
	return f.call("remove", name, "", func() error { return f.fs().Remove(name) })
}

func (f *processFS) RemoveAll(name string) error {
	return f.call("removeall", name, "", func() error { return f.fs().RemoveAll(name) })
}

// processWriter is a file that a worker process writes.
type processWriter struct {
	fs   *processFS
	name string
	out  dfs.Writer
}

func (o *processWriter) Write(data []byte) (n int, err error) {
	data = append([]byte(nil), data...) // the caller may be dead when the call is carried out
	err = o.fs.call("write", o.name, "", func() error {
		n, err = o.out.Write(data)
		return err
	})
	return n, err
}

func (o *processWriter) Close() error { return o.fs.call("close", o.name, "", o.out.Close) }
func (o *processWriter) Abort() error { return o.fs.call("abort", o.name, "", o.out.Abort) }

// plan returns the plan of an attempt's job.
func (w *world) plan(run *wire.Run) *wire.JobPlan {
	for _, c := range w.clients {
		if c.sub.Staging == run.Staging {
			return &c.sub.Plan.Jobs[run.Index]
		}
	}
	w.fail("%v belongs to no submission", run.Attempt)
	return nil
}
