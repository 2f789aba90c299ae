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

// logJob logs a text with the id and the name of a job.
func (l *leader) logJob(f *facts.Job, text string, args ...any) {
	l.log(text, append([]any{"job", l.facts.ID(f.N()).String(), "name", f.Name()}, args...)...)
}

// logAttempt logs a line about an attempt of a job that goes on. Of the warnings, and of the other lines,
// there are only some a minute for each job, since jobs may have very many attempts. Attempts without a slot
// have no other lines than warnings.
func (l *leader) logAttempt(j *job, warn bool, text string, id wire.AttemptID, tracker string, args ...any) {
	if !warn && !id.Task.Kind.Slotted() || j.facts.Stopping() || j.facts.Ended() {
		return
	}
	limit := &j.tally.lines
	if warn {
		limit = &j.tally.warnings
	}
	suppressed, ok := limit.Admit(time.UnixMilli(l.wall()))
	if !ok {
		return
	}
	args = append([]any{"attempt", id.String(), "tracker", tracker}, args...)
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	l.c.emit(LogLine{Warn: warn, Text: text, Args: args})
}

// firstLine returns the first line of an error, which may have the end of a log.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return wire.Truncate(line, 300)
}

// logJobEnd logs how a job has ended, and why.
func (l *leader) logJobEnd(f *facts.Job) {
	end := f.End()
	args := []any{"state", end.Outcome.String(), "elapsed", time.Duration(end.Elapsed) * time.Millisecond}
	if end.Outcome != wire.Succeeded {
		args = append(args, "why", firstLine(end.Error))
	}
	l.logJob(f, "job ended", args...)
}
