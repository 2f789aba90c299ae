package core

import (
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// log writes a line to this process's log. args are names and values, alternating.
func (l *leader) log(text string, args ...any) { l.c.emit(LogLine{Text: text, Args: args}) }

func (l *leader) warn(text string, args ...any) {
	l.c.emit(LogLine{Warn: true, Text: text, Args: args})
}

// logJob logs that a job was submitted, has started or has ended.
func (l *leader) logJob(f *facts.Job, step string, args ...any) {
	l.log("job "+step, append([]any{"job", l.facts.ID(f.N()).String(), "name", f.Name()}, args...)...)
}

// logJobEnd logs how a job has ended, and why.
func (l *leader) logJobEnd(f *facts.Job) {
	end := f.End()
	args := []any{"state", end.Outcome.String(), "elapsed", time.Duration(end.Elapsed) * time.Millisecond}
	if end.Outcome != wire.Succeeded {
		reason, _, _ := strings.Cut(end.Error, "\n")
		args = append(args, "why", reason)
	}
	l.logJob(f, "ended", args...)
}
