package tasktracker

import (
	"os"

	"github.com/quernmr/quern/tasktracker/core"
)

// do carries out a command of the core, or begins to. It runs on the loop's
// goroutine and does not wait.
func (l *loop) do(c core.Command) {
	switch c := c.(type) {
	case core.Send:
		if l.stream != nil {
			l.stream.send(c.Message)
		}
	case core.Hangup:
		l.cfg.Logger.Warn("stream to the job tracker ended", "reason", c.Reason)
		l.hangup()
	case core.StartWorker:
		h := newHandle(l, c.Worker)
		l.workers[c.Worker] = h
		l.wait.Go(func() { h.live(c.Staging, c.Dir) })
	case core.SendWorker:
		if h := l.workers[c.Worker]; h != nil {
			h.say(c.Message)
		}
	case core.KillWorker:
		if h := l.workers[c.Worker]; h != nil {
			h.kill()
		}
	case core.ReadLog:
		l.wait.Go(func() { l.event(core.LogRead{Attempt: c.Attempt, Text: lastLines(c.Files)}) })
	case core.Fetch:
		l.gather.fetch(l.ctx, c)
	case core.CancelFetch:
		l.gather.cancel(workKey{fetch: c.Fetch})
	case core.Merge:
		l.gather.merge(l.ctx, c)
	case core.CancelMerge:
		l.gather.cancel(workKey{merge: c.Merge})
	case core.Remove:
		l.removals.Put(c.Path)
	case core.Forget:
		l.forget(c.Staging)
	}
}

// remove removes files and trees, one after the other.
func (l *loop) remove() {
	for {
		paths := l.removals.Take()
		if paths == nil {
			return
		}
		for _, path := range paths {
			if err := os.RemoveAll(path); err != nil {
				l.cfg.Logger.Warn("cannot remove", "path", path, "error", err)
			}
		}
	}
}
