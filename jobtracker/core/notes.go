package core

import (
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// log writes a line to the job tracker's log. Args are names and values.
func (l *leader) log(text string, args ...any) { l.c.emit(LogLine{Text: text, Args: args}) }

// warn writes a line that operators should see.
func (l *leader) warn(text string, args ...any) { l.c.emit(LogLine{Warn: true, Text: text, Args: args}) }

// noteJob logs a step in a job's life.
func (l *leader) logJob(f *facts.Job, step string, args ...any) {
	l.log("job "+step, append([]any{"job", l.facts.ID(f.N()).String(), "name", f.Name()}, args...)...)
}

// noteEnd logs how a job has ended, and why.
func (l *leader) logJobEnd(f *facts.Job) {
	end := f.End()
	args := []any{"state", end.Outcome.String(), "elapsed", time.Duration(end.Elapsed) * time.Millisecond}
	if end.Outcome != wire.Succeeded {
		why, _, _ := strings.Cut(end.Error, "\n")
		args = append(args, "why", why)
	}
	l.logJob(f, "ended", args...)
}
