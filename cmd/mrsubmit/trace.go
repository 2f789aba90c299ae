package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

const traceHelp = `Prints when each attempt of a job ran, and where, in Chrome's trace format: open the file at
https://ui.perfetto.dev or chrome://tracing. Each task tracker is a process with a row for each slot that
the job used. Attempts of a running job end at the present.`

func traceFlags(q *query) {
	q.flags.StringVar(&q.output, "o", "", "write to this `file` (default standard output)")
}

// trace prints a job, or the jobs of a flow, as a trace.
func (q *query) trace(ctx context.Context) error {
	ids, err := q.jobIDs(ctx)
	if err != nil {
		return err
	}
	var jobs []tracedJob
	for _, id := range ids {
		job, err := q.job(ctx, id)
		if err != nil {
			return err
		}
		attempts, err := q.attempts(ctx, id)
		if err != nil {
			return err
		}
		jobs = append(jobs, tracedJob{id, job.Name, attempts.Items})
	}
	now := time.Now()
	if c, err := q.cluster.Cluster(ctx); err == nil {
		now = c.Wall // attempts have times of this clock
	}
	events, err := traceOf(jobs, now)
	if err != nil {
		return err
	}
	return q.writeTrace(events)
}

// writeTrace writes one event a line, to the file of -o or to standard output.
func (q *query) writeTrace(events []traceEvent) error {
	var b bytes.Buffer
	b.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`)
	for i := range events {
		line, err := json.Marshal(&events[i])
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		fmt.Fprintf(&b, "%s\n%s", map[bool]string{true: ",", false: ""}[i > 0], line)
	}
	b.WriteString("\n]}\n")
	if q.output != "" {
		return os.WriteFile(q.output, b.Bytes(), 0o666)
	}
	_, err := q.stdout.Write(b.Bytes())
	return err
}

// tracedJob is a job with its attempts.
type tracedJob struct {
	id       wire.JobID
	name     string
	attempts []web.Attempt
}

// traceEvent is an event of Chrome's trace format. Times are in microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Type     string         `json:"ph"` // X: a slice, M: a name, C: numbers
	Category string         `json:"cat,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	At       int64          `json:"ts"`
	Took     int64          `json:"dur,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// Processes and threads of a trace. Jobs come first, then task trackers.
const (
	firstTracker = 1000
	rowsPerKind  = 1000
)

// traced is an attempt with its times since the first event.
type traced struct {
	*web.Attempt
	id         wire.AttemptID
	began, end time.Duration
	row        int // on its task tracker, among the attempts of its kind
}

// traceOf makes the trace of some jobs at a time.
func traceOf(jobs []tracedJob, now time.Time) ([]traceEvent, error) {
	all, err := tracedAttempts(jobs, now)
	if err != nil {
		return nil, err
	}
	byTracker := make(map[string][]*traced)
	for i := range all {
		byTracker[all[i].Tracker] = append(byTracker[all[i].Tracker], &all[i])
	}
	var events []traceEvent
	for i, job := range jobs {
		events = append(events, jobEvents(i+1, job, all)...)
	}
	for i, name := range slices.Sorted(maps.Keys(byTracker)) {
		events = append(events, trackerEvents(firstTracker+i, name, byTracker[name])...)
	}
	return events, nil
}

// tracedAttempts lists the attempts that have begun, by their beginning and then by id.
func tracedAttempts(jobs []tracedJob, now time.Time) ([]traced, error) {
	var all []traced
	start := now
	for _, job := range jobs {
		for i := range job.attempts {
			a := &job.attempts[i]
			id, err := wire.ParseAttemptID(a.ID)
			if err != nil {
				return nil, fmt.Errorf("trace of %v: %w", job.id, err)
			}
			if a.Began.IsZero() {
				continue
			}
			if a.Began.Before(start) {
				start = a.Began
			}
			all = append(all, traced{Attempt: a, id: id})
		}
	}
	for i := range all {
		a := &all[i]
		a.began = a.Began.Sub(start)
		a.end = max(now.Sub(start), a.began)
		if a.final() {
			a.end = a.began + time.Duration(a.TookMillis)*time.Millisecond
		}
	}
	slices.SortFunc(all, func(x, y traced) int { return cmp.Or(cmp.Compare(x.began, y.began), x.id.Compare(y.id)) })
	return all, nil
}

func (a *traced) final() bool {
	for _, s := range []wire.AttemptState{wire.AttemptSucceeded, wire.AttemptFailed, wire.AttemptKilled} {
		if a.State == s.String() {
			return true
		}
	}
	return false
}

// jobEvents makes the process of a job: a row for each kind of attempt, from the first one to the last,
// and the number of running maps and reduces.
func jobEvents(process int, job tracedJob, all []traced) []traceEvent {
	events := []traceEvent{nameOf("process_name", process, 0, fmt.Sprintf("%v %s", job.id, job.name))}
	var changes []change
	for kind := wire.Setup; kind <= wire.Fence; kind++ {
		began, end, attempts := time.Duration(0), time.Duration(0), 0
		for i := range all {
			a := &all[i]
			if a.id.Task.Job != job.id || a.id.Task.Kind != kind {
				continue
			}
			if attempts++; attempts == 1 {
				began = a.began
			}
			end = max(end, a.end)
			if kind.Slotted() {
				changes = append(changes, change{a.began, kind, 1}, change{a.end, kind, -1})
			}
		}
		if attempts > 0 {
			row := int(kind)
			events = append(events, nameOf("thread_name", process, row, kind.String()), slice(kind.String(), "phase", process, row, began, end, map[string]any{"attempts": attempts}))
		}
	}
	return append(events, counts(process, changes)...)
}

// change is a change of the number of running attempts.
type change struct {
	at   time.Duration
	kind wire.Kind
	by   int
}

// counts makes an event for each time at which the number of running maps or reduces changes.
func counts(process int, changes []change) (events []traceEvent) {
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	running := make(map[wire.Kind]int)
	for i, c := range changes {
		running[c.kind] += c.by
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		events = append(events, traceEvent{
			Name: "running", Type: "C", Process: process, At: c.at.Microseconds(),
			Args: map[string]any{"maps": running[wire.Map], "reduces": running[wire.Reduce]},
		})
	}
	return events
}

// trackerEvents makes the process of a task tracker, with its attempts in order of their beginning.
func trackerEvents(process int, name string, attempts []*traced) []traceEvent {
	events := []traceEvent{nameOf("process_name", process, 0, "task tracker "+name)}
	rows := make(map[wire.Kind][]time.Duration) // by kind: when each row is free again
	for _, a := range attempts {
		kind := a.id.Task.Kind
		a.row = slices.IndexFunc(rows[kind], func(free time.Duration) bool { return free <= a.began })
		if a.row < 0 {
			a.row = len(rows[kind])
			rows[kind] = append(rows[kind], 0)
			events = append(events, nameOf("thread_name", process, a.thread(), fmt.Sprintf("%v %d", kind, a.row+1)))
		}
		rows[kind][a.row] = a.end
	}
	for _, a := range attempts {
		args := map[string]any{"job": a.id.Task.Job.String(), "state": a.State, "bytes": a.Bytes.Done}
		for key, text := range map[string]string{"error": a.Error, "locality": a.Level} {
			if text != "" {
				args[key] = text
			}
		}
		if a.Speculative {
			args["speculative"] = true
		}
		events = append(events, slice(a.ID, a.id.Task.Kind.String()+","+a.State, process, a.thread(), a.began, a.end, args))
	}
	return events
}

func (a *traced) thread() int { return int(a.id.Task.Kind)*rowsPerKind + a.row }

// nameOf names a process or a thread.
func nameOf(what string, process, thread int, name string) traceEvent {
	return traceEvent{Name: what, Type: "M", Process: process, Thread: thread, Args: map[string]any{"name": name}}
}

// slice is something that lasts.
func slice(name, category string, process, thread int, from, to time.Duration, args map[string]any) traceEvent {
	return traceEvent{
		Name: name, Type: "X", Category: category, Process: process, Thread: thread,
		At: from.Microseconds(), Took: max((to - from).Microseconds(), 1), Args: args,
	}
}
