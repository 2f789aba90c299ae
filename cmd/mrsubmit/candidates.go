package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

// valuesOf has the candidates for the values of flags, by name.
func valuesOf() map[string]candidate {
	return map[string]candidate{
		"metric": ofMetrics, "delay": ofRules, "state": ofStates, "priority": ofPriorities, "pool": ofPools, "owner": ofOwners, "name": ofNames, "flow": ofFlows,
		"tls-dir": ofFiles, "staging": ofFiles, "data": ofFiles, "o": ofFiles,
	}
}

func ofFiles(context.Context, *line) []choice { return filesWanted }

func plain(texts []string) (list []choice) {
	for _, text := range texts {
		list = append(list, choice{text, ""})
	}
	return list
}

func ofShells(context.Context, *line) []choice     { return plain(shells()) }
func ofSchedulers(context.Context, *line) []choice { return plain(menu.Names()) }
func ofMetrics(context.Context, *line) []choice    { return plain(scheduler.MetricNames()) }
func ofRules(context.Context, *line) []choice      { return plain(locality.RuleNames()) }

// ofStates lists the states of jobs, or those of attempts for mrsubmit attempts.
func ofStates(_ context.Context, l *line) []choice {
	if l.flags.Name() == "attempts" {
		return plain(attemptStates())
	}
	var list []choice
	for s := wire.Waiting; s <= wire.Killed; s++ {
		list = append(list, choice{s.String(), ""})
	}
	return list
}

func ofPriorities(context.Context, *line) []choice {
	var list []choice
	for p := wire.VeryLow; p <= wire.VeryHigh; p++ {
		list = append(list, choice{p.String(), ""})
	}
	return list
}

// ofSettings lists NAME= for mrsubmit set, and NAME=VALUE where the values are known.
func ofSettings(ctx context.Context, l *line) (list []choice) {
	for _, s := range settings() {
		of := valuesOf()[s.name]
		begin := s.name + "="
		if of == nil || len(l.word) < len(begin) || l.word[:len(begin)] != begin {
			list = append(list, choice{begin, ""})
			continue
		}
		for _, c := range of(ctx, l) {
			list = append(list, choice{begin + c.text, c.meaning})
		}
	}
	return list
}

// jobs lists the jobs that a query selects.
func (l *line) jobs(ctx context.Context, of core.Query) (jobs []web.Job) {
	l.ask(ctx, func(ctx context.Context, q *query) { jobs, _ = q.cluster.Jobs(ctx, of) })
	return jobs
}

func jobChoices(jobs []web.Job) (list []choice) {
	seen := make(map[string]bool)
	for i := range jobs {
		j := &jobs[i]
		list = append(list, choice{j.ID, j.Name + ", " + j.State})
		if j.Flow != "" && !seen[j.Flow] {
			seen[j.Flow] = true
			list = append(list, choice{j.Flow, "flow of " + j.Name})
		}
	}
	return list
}

func ofJobs(ctx context.Context, l *line) []choice { return jobChoices(l.jobs(ctx, core.Query{})) }

func ofOutputs(ctx context.Context, l *line) []choice {
	succeeded := core.Query{Filter: admission.Filter{States: []wire.State{wire.Succeeded}}}
	return append(jobChoices(l.jobs(ctx, succeeded)), filesWanted...)
}

func ofUnfinished(ctx context.Context, l *line) []choice {
	var unfinished []wire.State
	for s := wire.Waiting; s <= wire.Killed; s++ {
		if !s.Ended() {
			unfinished = append(unfinished, s)
		}
	}
	return jobChoices(l.jobs(ctx, core.Query{Filter: admission.Filter{States: unfinished}}))
}

// texts lists the different texts of jobs.
func (l *line) texts(ctx context.Context, of func(j *web.Job) string) []choice {
	var list []string
	for _, j := range l.jobs(ctx, core.Query{}) {
		if text := of(&j); text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return plain(list)
}

func ofOwners(ctx context.Context, l *line) []choice {
	return l.texts(ctx, func(j *web.Job) string { return j.Owner })
}

func ofNames(ctx context.Context, l *line) []choice {
	return l.texts(ctx, func(j *web.Job) string { return j.Name })
}

func ofFlows(ctx context.Context, l *line) []choice {
	return l.texts(ctx, func(j *web.Job) string { return j.Flow })
}

// ofAttempts lists the tasks and attempts of the job before the word.
func ofAttempts(ctx context.Context, l *line) (list []choice) {
	l.ask(ctx, func(ctx context.Context, q *query) {
		q.args = l.args
		ids, _, err := q.firstIDs(ctx)
		for i := 0; err == nil && i < len(ids); i++ {
			var all *web.Attempts
			if all, err = q.attempts(ctx, ids[i]); err == nil {
				list = append(list, attemptChoices(all.Items)...)
			}
		}
	})
	return list
}

// ofRunningAttempts lists the attempts that run, of all jobs.
func ofRunningAttempts(ctx context.Context, l *line) (list []choice) {
	l.ask(ctx, func(ctx context.Context, q *query) {
		jobs, err := q.cluster.Recent(ctx, wire.AttemptRunning.String(), wire.AttemptReady.String())
		for i := 0; err == nil && i < len(jobs.Items); i++ {
			for _, a := range jobs.Items[i].Attempts {
				list = append(list, choice{a.ID, a.State + " on " + a.Tracker})
			}
		}
	})
	return list
}

func attemptChoices(all []web.Attempt) (list []choice) {
	var last wire.TaskID
	for i := range all {
		a := &all[i]
		id, err := wire.ParseAttemptID(a.ID)
		if err != nil {
			continue
		}
		if id.Task != last {
			last = id.Task
			list = append(list, choice{id.Task.String(), "all its attempts"})
		}
		list = append(list, choice{a.ID, fmt.Sprintf("%s on %s", a.State, a.Tracker)})
	}
	return list
}

// status asks for the status of the cluster, and lists choices of it.
func (l *line) status(ctx context.Context, of func(c *web.Cluster) []choice) (list []choice) {
	l.ask(ctx, func(ctx context.Context, q *query) {
		if c, err := q.cluster.Cluster(ctx); err == nil {
			list = of(c)
		}
	})
	return list
}

func ofPools(ctx context.Context, l *line) []choice {
	return l.status(ctx, func(c *web.Cluster) (list []choice) {
		for _, p := range c.Pools.Pools {
			if p.Removed {
				continue
			}
			list = append(list, choice{p.Name, ""})
		}
		return list
	})
}

func ofTrackers(ctx context.Context, l *line) []choice {
	return l.status(ctx, func(c *web.Cluster) (list []choice) {
		for i := range c.Trackers {
			t := &c.Trackers[i]
			list = append(list, choice{t.ID, t.Host + ", " + trackerState(c, t)})
		}
		return list
	})
}

func ofVoters(ctx context.Context, l *line) []choice {
	return l.status(ctx, func(c *web.Cluster) (list []choice) {
		for _, v := range c.Voters {
			list = append(list, choice{v.ID, v.Addr})
		}
		return list
	})
}
