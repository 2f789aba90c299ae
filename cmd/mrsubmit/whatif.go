package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

const whatIfHelp = `For each scheduler: the mean time from the submission of a job to its end, the mean stretch (this
time by the time that the job takes alone), the time until the last job ends, the number of
jobs that miss their deadline, and the current metric. A flow counts as one job. The
current scheduler has a *. The prediction is about the jobs that have not ended, as if no
job came and nothing failed.`

// whatIf prints what each scheduler would make of the jobs.
func (q *query) whatIf(ctx context.Context) error {
	x, err := q.cluster.WhatIf(ctx)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(x)
	}
	if x.Unknown != "" {
		return fmt.Errorf("nothing is predicted: %s", client.OneLine(x.Unknown))
	}
	for _, job := range x.LeftOut {
		fmt.Fprintf(q.stdout, "without %s: %s\n", client.OneLine(job.Job), client.OneLine(job.Reason))
	}
	if x.Jobs == 0 {
		_, err := fmt.Fprintln(q.stdout, "no job has tasks left")
		return err
	}
	rows := [][]string{{"SCHEDULER", "MEAN RESPONSE", "MEAN STRETCH", "LAST END", "LATE", x.Scheduling.Metric}}
	for i := range x.Items {
		s := &x.Items[i]
		name := s.Scheduler
		if s.Current {
			name += " *"
		}
		if s.Unknown != "" {
			rows = append(rows, []string{name, "-", "-", "-", "-", s.Unknown})
			continue
		}
		value := "-"
		if v, ok := s.Metrics[x.Scheduling.Metric]; ok {
			value = strconv.FormatFloat(v, 'g', 6, 64)
		}
		rows = append(rows, []string{
			name, secondsText(s.MeanResponseSeconds), strconv.FormatFloat(s.MeanStretch, 'f', 2, 64), secondsText(s.LastEndSeconds), strconv.Itoa(s.Late),
			value,
		})
	}
	if err := q.printTable(rows); err != nil || !q.eachJob {
		return err
	}
	fmt.Fprintln(q.stdout)
	return q.printTable(endRows(x))
}

// endRows has a row for each job, with its time from the submission to the end under each scheduler.
func endRows(x *web.WhatIf) [][]string {
	head, ends := []string{"JOB"}, make(map[string][]string)
	for i := range x.Items {
		s := &x.Items[i]
		if s.Unknown != "" {
			continue
		}
		head = append(head, s.Scheduler)
		for _, j := range s.Jobs {
			ends[j.Job] = append(ends[j.Job], elapsedText(j.EndMillis))
		}
	}
	rows := [][]string{}
	for job, times := range ends {
		rows = append(rows, append([]string{job}, times...))
	}
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Or(cmp.Compare(len(a[0]), len(b[0])), cmp.Compare(a[0], b[0])) })
	return slices.Insert(rows, 0, head)
}
