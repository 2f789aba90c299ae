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
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

const listSynopsis = "[-state STATES] [-owner USER] [-pool POOL] [-name NAME] [-since TIME] [-flow FLOW] [-json]"

func listFlags(q *query) {
	q.filter.define(q)
	q.flags.StringVar(&q.filter.flow, "flow", "", "only jobs of this `flow`")
}

// list prints a line for each job that the cluster knows and the flags select.
func (q *query) list(ctx context.Context) error {
	asked, err := q.filter.query(time.Now())
	if err != nil {
		return err
	}
	jobs, err := q.cluster.Jobs(ctx, asked)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(jobs)
	}
	rows := [][]string{{"JOB", "STATE", "POOL", "PRIORITY", "DEADLINE", "MAPS", "REDUCES", "ELAPSED", "ENDS", "OWNER", "FLOW", "NAME"}}
	flow := ""
	for _, j := range byFlow(jobs) {
		if j.Flow != "" && j.Flow != flow {
			rows = append(rows, flowRow(j.Flow, jobs))
		}
		flow = j.Flow
		state, deadline, ends := j.State, "", ""
		if j.Suspended {
			state += ", suspended"
		}
		if s, err := j.Status(); err == nil {
			deadline, ends = client.GoalText(&s), client.PredictionText(&s)
		}
		if j.Hidden {
			rows = append(rows, []string{j.ID, state, j.Settings.Pool, "-", "-", "-", "-", elapsedText(j.ElapsedMillis), "-", j.Owner, cmp.Or(j.Flow, "-"), "(hidden)"})
			continue
		}
		rows = append(rows, []string{
			j.ID, state, j.Settings.Pool, j.Settings.Priority, cmp.Or(deadline, "-"), tasksText(j.Maps), tasksText(j.Reduces), elapsedText(j.ElapsedMillis), cmp.Or(ends, "-"), cmp.Or(j.Owner, "-"), cmp.Or(j.Flow, "-"), j.Name,
		})
	}
	return q.printTable(rows)
}

// byFlow puts the jobs of a flow one after the other, where its first one is.
func byFlow(jobs []web.Job) (list []*web.Job) {
	of := make(map[string][]*web.Job)
	for i := range jobs {
		of[jobs[i].Flow] = append(of[jobs[i].Flow], &jobs[i])
	}
	for i := range jobs {
		switch flow := jobs[i].Flow; {
		case flow == "":
			list = append(list, &jobs[i])
		default:
			list = append(list, of[flow]...)
			of[flow] = nil
		}
	}
	return list
}

// flowRow sums up the listed jobs of a flow. Its predicted end is the last one of its jobs, if all are known.
func flowRow(flow string, jobs []web.Job) []string {
	var last wire.JobStatus
	var first *web.Job
	var maps, reduces web.Tasks
	ended, succeeded, all, known := 0, 0, 0, true
	for i := range jobs {
		j := &jobs[i]
		if j.Flow != flow {
			continue
		}
		first = cmp.Or(first, j)
		all++
		maps.Done, maps.Total = maps.Done+j.Maps.Done, maps.Total+j.Maps.Total
		reduces.Done, reduces.Total = reduces.Done+j.Reduces.Done, reduces.Total+j.Reduces.Total
		s, err := j.Status()
		switch {
		case err != nil:
			known = false
		case s.State.Ended():
			ended++
			if s.State == wire.Succeeded {
				succeeded++
			}
		case !s.Prediction.Known():
			known = false
		case s.Prediction.Likely > last.Prediction.Likely:
			last = s
		}
	}
	state, ends := "running", "-"
	switch {
	case ended == all && succeeded == all:
		state = "succeeded"
	case ended == all:
		state = "ended"
	case known:
		ends = cmp.Or(client.PredictionText(&last), "-")
	}
	return []string{flow, state, first.Settings.Pool, "-", "-", tasksText(maps), tasksText(reduces), elapsedText(first.ElapsedMillis), ends, cmp.Or(first.Owner, "-"), "-", fmt.Sprintf("(flow, %d of %d jobs have ended)", ended, all)}
}

func tasksText(t web.Tasks) string { return fmt.Sprintf("%d/%d", t.Done, t.Total) }

func elapsedText(millis int64) string {
	return client.Duration(time.Duration(millis) * time.Millisecond)
}

// status prints the state and progress of jobs.
func (q *query) status(ctx context.Context) error {
	ids, err := q.jobIDs(ctx)
	if err != nil {
		return err
	}
	jobs := make([]wire.JobStatus, len(ids))
	for i, id := range ids {
		if jobs[i], err = q.job(ctx, id); err != nil {
			return err
		}
	}
	if q.json {
		return q.printJobs(jobs)
	}
	for i := range jobs {
		if err := q.printStatus(&jobs[i]); err != nil {
			return err
		}
	}
	return nil
}

// printJobs prints one job as an object, several as an array.
func (q *query) printJobs(jobs []wire.JobStatus) error {
	if len(jobs) == 1 {
		return q.printJSON(web.JobOf(&jobs[0]))
	}
	all := make([]web.Job, len(jobs))
	for i := range jobs {
		all[i] = web.JobOf(&jobs[i])
	}
	return q.printJSON(all)
}

func (q *query) printStatus(job *wire.JobStatus) error {
	err := client.PrintStatus(q.stdout, job)
	if err == nil && !job.Flow.IsZero() {
		_, err = fmt.Fprintf(q.stdout, "of %v\n", job.Flow)
	}
	if err == nil && job.Owner != "" {
		_, err = fmt.Fprintf(q.stdout, "owner %s\n", client.OneLine(job.Owner))
	}
	return err
}

// wait shows jobs until all of them end.
func (q *query) wait(ctx context.Context) error {
	ids, err := q.jobIDs(ctx)
	if err != nil {
		return err
	}
	var running []wire.JobID
	failed := false
	ended := make(map[wire.JobID]wire.JobStatus, len(ids))
	for _, id := range ids {
		job, err := q.job(ctx, id)
		switch {
		case err != nil:
			return err
		case !job.State.Ended():
			running = append(running, id)
			continue
		}
		ended[id] = job
		if job.State != wire.Succeeded || !q.quiet {
			fmt.Fprintf(q.stderr, "%v %s %v\n", id, client.OneLine(job.Name), job.State)
		}
		failed = failed || job.State != wire.Succeeded
	}
	if len(running) > 0 {
		notes := make(chan string, 16)
		q.cluster.Note = noteTo(notes)
		code := client.Follow(ctx, client.Config{Cluster: q.cluster, Out: q.stderr, Quiet: q.quiet, Width: q.width, GiveUp: q.signals.GiveUp, HangUp: q.signals.HangUp, Notes: notes}, running)
		if code == client.ExitHungUp {
			return errHungUp
		}
		failed = failed || code != 0
	}
	if q.json {
		if err := q.printEnds(ctx, ids, ended); err != nil && !(failed && isOutputClosed(err)) {
			return err
		}
	}
	if failed {
		return errReported
	}
	return nil
}

// printEnds prints jobs after the wait. ended has the jobs that had ended before the wait.
func (q *query) printEnds(ctx context.Context, ids []wire.JobID, ended map[wire.JobID]wire.JobStatus) error {
	jobs := make([]web.Job, 0, len(ids))
	for _, id := range ids {
		job, ok := ended[id]
		if !ok {
			var err error
			if job, err = q.job(ctx, id); err != nil {
				return err
			}
		}
		jobs = append(jobs, web.JobOf(&job))
	}
	return q.printJSON(jobs)
}

// noteTo sends notes to a channel, and drops them while it is full.
func noteTo(notes chan<- string) func(string) {
	return func(line string) {
		select {
		case notes <- line:
		default:
		}
	}
}

func waitFlags(q *query) {
	q.flags.BoolVar(&q.quiet, "quiet", false, "print only errors")
}

func killFlags(q *query) {
	q.flags.StringVar(&q.reason, "reason", "", "`text` that the job's status will show")
}

// kill kills jobs, and does not wait until they end.
func (q *query) kill(ctx context.Context) error {
	ids, err := q.targetIDs(ctx, q.args)
	if err != nil {
		return err
	}
	reason := cmp.Or(q.reason, "killed by "+q.user())
	var all error
	killed := make([]wire.JobID, 0, len(ids))
	for _, id := range ids {
		err := q.cluster.Kill(ctx, id, reason)
		if errors.Is(err, admission.ErrUnknownJob) {
			if _, past := q.fromHistory(ctx, id, err); past == nil {
				err = fmt.Errorf("%v: %w", id, admission.ErrJobEnded)
			}
		}
		if err == nil {
			killed = append(killed, id)
		}
		all = errors.Join(all, err)
	}
	if q.json {
		texts := make([]string, 0, len(killed))
		for _, id := range killed {
			texts = append(texts, id.String())
		}
		all = errors.Join(all, q.printJSON(map[string][]string{"killed": texts}))
	}
	return all
}

// counters prints the counters of a job, or of each job of a flow.
func (q *query) counters(ctx context.Context) error {
	ids, flow, err := q.firstIDs(ctx)
	if err != nil {
		return err
	}
	all := make(map[string]wire.Counters)
	for _, id := range ids {
		job, err := q.job(ctx, id)
		switch {
		case err != nil:
			return err
		case q.json:
			all[id.String()] = job.Counters
			if job.Counters == nil {
				all[id.String()] = wire.Counters{}
			}
			continue
		case flow:
			fmt.Fprintf(q.stdout, "%v %s\n", id, client.OneLine(job.Name))
		}
		if err := q.printCounters(&job); err != nil {
			return err
		}
	}
	switch {
	case q.json && flow:
		return q.printJSON(all)
	case q.json:
		return q.printJSON(all[ids[0].String()])
	}
	return nil
}

func (q *query) printCounters(job *wire.JobStatus) error {
	rows := [][]string{{"GROUP", "COUNTER", "VALUE"}}
	for _, group := range slices.Sorted(maps.Keys(job.Counters)) {
		for _, name := range slices.Sorted(maps.Keys(job.Counters[group])) {
			rows = append(rows, []string{group, name, strconv.FormatInt(job.Counters[group][name], 10)})
		}
	}
	return q.printTable(rows)
}
