package tasktracker

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// do carries out a command of the core, or starts it. It runs on the loop's goroutine and
// does not wait.
func (l *loop) do(c core.Command) {
	switch c := c.(type) {
	case core.Send:
		if l.stream != nil {
			l.stream.send(c.Message)
		}
	case core.AttemptEnded:
		l.logEnd(c)
	case core.Hangup:
		l.hangup(c)
	case core.ReadNonce:
		l.requestNonce(c)
	case core.StoreCluster:
		l.wait.Go(func() { l.storeLine(clusterName, c.Cluster) })
	case core.StoreStaging:
		l.wait.Go(func() { l.storeLine(stagingName, c.Staging) })
	case core.Leave:
		l.cancel(ErrDrained)
	case core.Quit:
		l.cancel(errors.New(c.Reason))
	case core.StartWorker:
		l.startWorker(c)
	case core.SendWorker:
		if run, ok := c.Message.(*wire.Run); ok && run.Attempt.Task.Kind == wire.Map {
			l.addNetwork(run)
		}
		l.workers.Send(c.Worker, c.Message)
	case core.Limit:
		l.workers.Limit(c)
	case core.Record:
		l.wait.Go(func() { l.record(c) })
	case core.Probe:
		l.probe(c)
	case core.KillWorker:
		l.workers.Kill(c.Worker)
	case core.StopWorker:
		l.workers.End(c.Worker, c.Dump)
	case core.ReadLog:
		l.wait.Go(func() { l.event(l.readLog(c)) })
	case core.Fetch:
		l.gather.Fetch(l.ctx, c)
	case core.FetchBatch:
		l.gather.FetchBatch(l.ctx, c)
	case core.Share:
		l.gather.Share(c)
	case core.CancelFetch:
		l.gather.CancelFetch(c.Fetch)
	case core.Merge:
		l.gather.Merge(l.ctx, c)
	case core.CancelMerge:
		l.gather.CancelMerge(c.Merge)
	case core.Remove:
		if l.cfg.KeepFiles {
			return
		}
		l.diskWork.Put(func() { l.remove(c.Path) })
	case core.RemoveProgram:
		if remove := l.programs.Forget(c.Staging); remove != nil {
			l.diskWork.Put(remove)
		}
		l.removeUnusedJobs(c.Staging)
		for _, dir := range l.sideDirs.Release(c.Staging) {
			l.do(core.Remove{Path: dir})
		}
		l.forgetCredentials(c.Staging)
	}
}

// addNetwork tells an attempt what is known of the network.
func (l *loop) addNetwork(run *wire.Run) {
	if run.Network = l.gather.Network(); run.Network != nil {
		run.Network.Slots = l.cfg.MapSlots
	}
}

// runDiskWork runs disk operations in order. The loop does not wait for them.
func (l *loop) runDiskWork() {
	for do := range l.diskWork.All() {
		do()
	}
}

func (l *loop) remove(path string) {
	l.keepProfile(path)
	if err := l.disks.Remove(path); err != nil {
		l.cfg.Logger.Warn("cannot remove", "path", path, "error", err)
	}
}

// keepProfile moves the CPU profile of an attempt from its working directory beside its logs, before a directory is
// removed that has it.
func (l *loop) keepProfile(path string) {
	work := path
	if filepath.Base(path) != "work" {
		work = core.WorkDir(path)
	}
	id, err := wire.ParseAttemptID(filepath.Base(filepath.Dir(work)))
	if err != nil {
		return // not of an attempt
	}
	profile := filepath.Join(work, runtime.ProfileName)
	for name, isDir := range map[string]bool{work: true, profile: false} { // no links of the job
		if info, err := os.Lstat(name); err != nil || info.IsDir() != isDir || !isDir && !info.Mode().IsRegular() {
			return
		}
	}
	if err := os.Rename(profile, filepath.Join(core.LogPath(l.cfg.Dir, id), runtime.ProfileName)); err != nil {
		l.cfg.Logger.Warn("cannot keep the profile of an attempt", "attempt", id, "error", err)
	}
}
