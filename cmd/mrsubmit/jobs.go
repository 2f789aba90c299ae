package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// list prints a line for each job that the cluster knows.
func (q *query) list(ctx context.Context) error {
	jobs, err := q.cluster.Jobs(ctx)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(jobs)
	}
	rows := [][]string{{"JOB", "STATE", "MAPS", "REDUCES", "ELAPSED", "NAME"}}
	for i := range jobs {
		j := &jobs[i]
		rows = append(rows, []string{
			j.ID, j.State, tasksText(j.Maps), tasksText(j.Reduces), elapsedText(j.ElapsedMillis), j.Name,
		})
	}
	return q.table(rows)
}

func tasksText(t web.Tasks) string { return fmt.Sprintf("%d/%d", t.Done, t.Total) }

// elapsedText prints a duration, to a tenth of a second once it has seconds.
func elapsedText(millis int64) string {
	d := time.Duration(millis) * time.Millisecond
	if d < time.Second {
		return d.String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// status tells how a job is getting on.
func (q *query) status(ctx context.Context) error {
	ids, err := q.jobIDs()
	if err != nil {
		return err
	}
	job, err := q.job(ctx, ids[0])
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(web.JobOf(&job))
	}
	return client.PrintStatus(q.stdout, &job)
}

// wait shows jobs until all have ended.
func (q *query) wait(ctx context.Context) error {
	ids, err := q.jobIDs()
	if err != nil {
		return err
	}
	var known []wire.JobID
	failed := false
	for _, id := range ids {
		job, err := q.job(ctx, id)
		switch {
		case err != nil:
			return err
		case !job.State.Ended():
			known = append(known, id)
			continue
		}
		fmt.Fprintf(q.stderr, "%v %s %v\n", id, client.OneLine(job.Name), job.State)
		failed = failed || job.State != wire.Succeeded
	}
	if len(known) > 0 {
		notes := make(chan string, 16)
		q.cluster.Note = noteTo(notes)
		code := client.Follow(ctx, client.Config{Cluster: q.cluster, Out: q.stderr, Width: q.width, GiveUp: q.giveUp, Notes: notes}, known)
		failed = failed || code != 0
	}
	if failed {
		return errReported
	}
	return nil
}

// noteTo hands notes on as far as there is room: none is worth waiting for.
func noteTo(notes chan<- string) func(string) {
	return func(line string) {
		select {
		case notes <- line:
		default:
		}
	}
}

// kill has jobs killed; it does not wait for their ends.
func (q *query) kill(ctx context.Context) error {
	ids, err := q.jobIDs()
	if err != nil {
		return err
	}
	reason := cmp.Or(q.reason, "killed by "+owner(q.getenv))
	var all error
	for _, id := range ids {
		err := q.cluster.Kill(ctx, id, reason)
		if errors.Is(err, core.ErrUnknownJob) {
			if _, past := q.past(ctx, id, err); past == nil {
				err = fmt.Errorf("%v: %w", id, core.ErrJobEnded)
			}
		}
		all = errors.Join(all, err)
	}
	return all
}

// counters prints a job's counters by their names.
func (q *query) counters(ctx context.Context) error {
	ids, err := q.jobIDs()
	if err != nil {
		return err
	}
	job, err := q.job(ctx, ids[0])
	if err != nil {
		return err
	}
	if q.json {
		if job.Counters == nil {
			job.Counters = wire.Counters{}
		}
		return q.printJSON(map[string]map[string]int64(job.Counters))
	}
	rows := [][]string{{"GROUP", "COUNTER", "VALUE"}}
	for _, group := range slices.Sorted(maps.Keys(job.Counters)) {
		for _, name := range slices.Sorted(maps.Keys(job.Counters[group])) {
			rows = append(rows, []string{group, name, strconv.FormatInt(job.Counters[group][name], 10)})
		}
	}
	return q.table(rows)
}
