package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

const attemptsHelp = `Lists attempts: those that run, the oldest first, then the others by task. TASK is the id of a
task or of one attempt. BYTES is how much of its input an attempt has read, or of its map
outputs. -state running lists what the slots do now.`

const endAttemptHelp = `The task runs again, if its job still needs it. ATTEMPT is the id of a running attempt, as
mrsubmit attempts lists it. The command returns when the attempt has ended. If its task tracker
is not connected, a kill reaches the task tracker later. An attempt that is committing its output
is not ended.
`

const killAttemptHelp = endAttemptHelp + `
A killed attempt is no failure. Like mapred job -kill-task.`

const failAttemptHelp = endAttemptHelp + `
A failed attempt counts as a failure of its task: after mapreduce.map.maxattempts or
mapreduce.reduce.maxattempts failures the job fails. The task runs on another task tracker, if
there is one. Like mapred job -fail-task.`

func attemptFlags(q *query) {
	q.flags.StringVar(&q.filter.states, "state", "", "only attempts in these `states`, separated by commas: "+strings.Join(attemptStates(), ", "))
}

// attemptStates lists the states of attempts, in the order of the list.
func attemptStates() (names []string) {
	for _, s := range []wire.AttemptState{wire.AttemptRunning, wire.AttemptReady, wire.AttemptFailed, wire.AttemptKilled, wire.AttemptSucceeded} {
		names = append(names, s.String())
	}
	return names
}

// listAttempts lists the attempts of a job, or of each job of a flow.
func (q *query) listAttempts(ctx context.Context) error {
	var states []string
	for state := range strings.SplitSeq(q.filter.states, ",") {
		if state = strings.TrimSpace(state); state != "" && !slices.Contains(attemptStates(), state) {
			return usagef("-state %s: want some of %s%s", state, strings.Join(attemptStates(), ", "), spelling.DidYouMean("", state, attemptStates()))
		} else if state != "" {
			states = append(states, state)
		}
	}
	ids, _, err := q.firstIDs(ctx)
	if err != nil {
		return err
	}
	ofTask := func(all []web.Attempt) []web.Attempt { return all }
	if len(q.args) > 1 {
		if ofTask, err = q.attemptFilter(ids); err != nil {
			return err
		}
	}
	list := []web.Attempt{}
	for _, id := range ids {
		all, err := q.attempts(ctx, id, states...)
		if err != nil {
			return err
		}
		list = append(list, ofTask(all.Items)...)
	}
	slices.SortStableFunc(list, func(a, b web.Attempt) int {
		return cmp.Or(cmp.Compare(attemptRank(&a), attemptRank(&b)), runsSince(&a).Compare(runsSince(&b)))
	})
	if q.json {
		return q.printJSON(list)
	}
	now := time.Now()
	if c, err := q.cluster.Cluster(ctx); err == nil {
		now = c.Wall // attempts have times of this clock
	}
	return q.printAttempts(list, runningRows(list, now))
}

// attemptRank orders attempts: those that run come first.
func attemptRank(a *web.Attempt) int {
	if attemptRuns(a) {
		return 0
	}
	return 1
}

func attemptRuns(a *web.Attempt) bool {
	return a.State == wire.AttemptRunning.String() || a.State == wire.AttemptReady.String()
}

// runsSince returns since when an attempt runs; zero: it has ended.
func runsSince(a *web.Attempt) time.Time {
	if attemptRuns(a) {
		return a.Began
	}
	return time.Time{}
}

// runningRows is attemptRows with the bytes that attempts have read. Attempts that run have taken the time until now.
func runningRows(attempts []web.Attempt, now time.Time) [][]string {
	rows := [][]string{{"ATTEMPT", "STATE", "TRACKER", "LEVEL", "BEGAN", "TOOK", "BYTES", "ERROR"}}
	for i, row := range attemptRows(attempts)[1:] {
		a := &attempts[i]
		if attemptRuns(a) && !a.Began.IsZero() {
			row[5] = elapsedText(max(now.Sub(a.Began), 0).Milliseconds())
		}
		bytes := "-"
		if a.Bytes.Total > 0 {
			bytes = fmt.Sprintf("%s of %s", client.Size(a.Bytes.Done), client.Size(a.Bytes.Total))
		} else if a.Bytes.Done > 0 {
			bytes = client.Size(a.Bytes.Done)
		}
		rows = append(rows, slices.Insert(row, 6, bytes))
	}
	return rows
}

func endAttemptFlags(q *query) {
	q.flags.StringVar(&q.reason, "reason", "", "`text` that mrsubmit attempts will show")
}

// endAttempts makes the commands that kill attempts or fail them.
func endAttempts(fail bool) func(q *query, ctx context.Context) error {
	return func(q *query, ctx context.Context) error {
		ids := make([]wire.AttemptID, len(q.args))
		for i, text := range q.args {
			var err error
			if ids[i], err = wire.ParseAttemptID(text); err != nil {
				return usagef("%v: mrsubmit attempts JOB lists them", err)
			}
		}
		var all error
		ended := make([]string, 0, len(ids))
		for _, id := range ids {
			if err := q.cluster.EndAttempt(ctx, id, fail, q.reason); err != nil {
				all = errors.Join(all, err)
				continue
			}
			ended = append(ended, id.String())
		}
		if q.json {
			key := map[bool]string{true: "failed", false: "killed"}[fail]
			all = errors.Join(all, q.printJSON(map[string][]string{key: ended}))
		}
		return all
	}
}
