package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Trackers that were lost are remembered for display: the latest ones, for a day, and until
// they are back. That is the leader's alone; the next one knows of those that it loses.
const (
	keptLosses = 100
	lossKept   = 24 * time.Hour
)

// loss is a tracker that was lost and is not back.
type loss struct {
	wire.LostTracker
	at time.Duration
}

// left ends an incarnation that was lost, or has ended since it was drained.
func (l *Live) left(t *tracker) {
	if l.drained(t) {
		l.log("task tracker has left, as it is drained", "tracker", t.Name, "addr", t.Addr)
		l.gone(t)
		return
	}
	x := wire.LostTracker{Tracker: t.Name, Host: t.Host, Addr: t.Addr, Rack: t.rack, Since: l.wall()}
	for _, a := range t.attempts {
		switch a.id.Task.Kind {
		case wire.Map:
			x.Maps++
		case wire.Reduce:
			x.Reduces++
		}
	}
	for n, outputs := range l.outputsOn(t) {
		if l.jobs[n].facts.Running() {
			x.Outputs += len(outputs)
		}
	}
	l.back(t.Name)
	l.fleet.losses = append(l.fleet.losses, loss{x, l.now})
	l.fleet.losses = l.fleet.losses[max(0, len(l.fleet.losses)-keptLosses):]
	l.warn("task tracker lost: nothing was heard of it for a lease", "tracker", t.Name, "addr", t.Addr,
		"silent", (l.now - t.contact.heard).Round(time.Millisecond), "maps", x.Maps, "reduces", x.Reduces, "outputs", x.Outputs)
	l.tellJobs(t, "lost", func() { l.gone(t) })
}

// back forgets that a tracker was lost.
func (l *Live) back(name string) {
	l.fleet.losses = slices.DeleteFunc(l.fleet.losses, func(x loss) bool { return x.Tracker == name })
}

// lostTrackers is those that are worth telling of at a time, by name.
func (l *Live) lostTrackers(now time.Duration) (list []wire.LostTracker) {
	for _, x := range l.fleet.losses {
		if now-x.at < lossKept {
			list = append(list, x.LostTracker)
		}
	}
	slices.SortFunc(list, func(a, b wire.LostTracker) int { return strings.Compare(a.Tracker, b.Tracker) })
	return list
}

// tellJobs has the troubles of each job say what reruns of it as everything is taken back
// that an incarnation had.
func (l *Live) tellJobs(t *tracker, became string, take func()) {
	before, reduces, homes := make([]int, len(l.order)), make(map[*job]int), make(map[*job]int)
	for i, j := range l.order {
		before[i] = j.assign.Pending()
		if h := t.hosting.homes[j]; h != nil {
			homes[j] = h.Len()
		}
	}
	for _, a := range t.attempts {
		if a.id.Task.Kind == wire.Reduce {
			reduces[a.job]++
		}
	}
	take()
	for i, j := range l.order {
		var parts []string
		for _, p := range []struct {
			n    int
			what [2]string
		}{
			{j.assign.Pending() - before[i], [2]string{"map reruns", "maps rerun"}},
			{reduces[j], [2]string{"reduce reruns", "reduces rerun"}},
			{homes[j], [2]string{"partition is gathered again", "partitions are gathered again"}},
		} {
			if p.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what[min(p.n-1, 1)]))
			}
		}
		if len(parts) > 0 && j.facts.Running() {
			j.lossTrouble(fmt.Sprintf("tracker %s %s: %s", t.Name, became, strings.Join(parts, ", ")))
		}
	}
}

// log has the job tracker's log say something. Args are names and values.
func (l *Live) log(text string, args ...any) { l.c.emit(Note{Text: text, Args: args}) }

// warn is log of what an operator should know.
func (l *Live) warn(text string, args ...any) { l.c.emit(Note{Warn: true, Text: text, Args: args}) }

// noteJob notes a step in a job's life.
func (l *Live) noteJob(f *facts.Job, step string, args ...any) {
	l.log("job "+step, append([]any{"job", l.facts.ID(f.N()).String(), "name", f.Name()}, args...)...)
}

// noteEnd notes how a job has ended, and why.
func (l *Live) noteEnd(f *facts.Job) {
	args := []any{"state", f.End().Outcome.String(), "elapsed", time.Duration(f.End().Elapsed) * time.Millisecond}
	if f.End().Outcome != wire.Succeeded {
		why, _, _ := strings.Cut(f.End().Error, "\n")
		args = append(args, "why", why)
	}
	l.noteJob(f, "ended", args...)
}
