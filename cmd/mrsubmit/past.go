package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// pastJobs has the histories of ended jobs: a job tracker, which checks who may see a job, or a directory.
type pastJobs interface {
	History(ctx context.Context, id wire.JobID) (*web.History, error)
	Histories(ctx context.Context, q core.Query, n int) (list []web.History, skipped []string, err error) // newest first
}

// past returns where to read histories.
func (q *query) past() pastJobs {
	if q.staging != "" {
		return stagedJobs{q.staging}
	}
	return q.cluster
}

// stagedJobs reads the files below a staging directory, which only the account of the cluster can.
type stagedJobs struct{ staging string }

func (s stagedJobs) History(_ context.Context, id wire.JobID) (*web.History, error) {
	r, err := history.Find(files(), s.staging, id)
	if err != nil {
		return nil, err
	}
	past := web.HistoryOf(r)
	return &past, nil
}

func (s stagedJobs) Histories(ctx context.Context, q core.Query, n int) (list []web.History, skipped []string, err error) {
	if !q.Filter.Flow.IsZero() {
		p, err := history.ReadFlow(ctx, files(), s.staging, q.Filter.Flow)
		if err != nil {
			return nil, nil, err
		}
		slices.Reverse(p.Records)
		list, skipped = appendPage(nil, nil, p)
		return list, skipped, nil
	}
	of := history.Query{Since: time.UnixMilli(q.Filter.Since), Select: func(r *history.Record) bool {
		job := r.Job
		job.Owner = r.Owner
		return q.Filter.Selects(&job, r.Submitted, true) // who can read the files may see them
	}}
	for {
		p, err := history.ReadPage(ctx, files(), s.staging, of)
		if err != nil {
			return nil, nil, err
		}
		list, skipped = appendPage(list, skipped, p)
		if n > 0 && len(list)+len(skipped) >= n {
			return list[:min(n, len(list))], skipped, nil
		}
		if of.After = p.Next; of.After.IsZero() {
			return list, skipped, nil
		}
	}
}

func appendPage(list []web.History, skipped []string, p *history.Page) ([]web.History, []string) {
	for _, r := range p.Records {
		list = append(list, web.HistoryOf(r))
	}
	for _, why := range p.Skipped {
		skipped = append(skipped, why.Error())
	}
	return list, skipped
}

const historySynopsis = "[-n JOBS] [-state STATES] [-owner USER] [-pool POOL] [-name NAME] [-since TIME] [-staging URL] [-json] [JOB|FLOW]"

func historyFlags(q *query) {
	q.flags.IntVar(&q.limit, "n", 20, "list this many `jobs`; 0: all")
	q.filter.define(q)
	q.flags.StringVar(&q.staging, "staging", "", "read histories in this staging `directory`, without a job tracker")
}

// history lists ended jobs, newest first, or prints the histories of a job or flow.
func (q *query) history(ctx context.Context) error {
	if q.limit < 0 {
		return usagef("-n must be a number of jobs or 0 for all, got %d", q.limit)
	}
	if q.staging != "" {
		staging, err := dfs.Clean(q.staging)
		if err != nil {
			return err
		}
		if _, err := files().Stat(staging); err != nil { // without it, a list would be empty
			return fmt.Errorf("this machine cannot read staging directory %s: %w", staging, err)
		}
		q.staging = staging
	}
	if len(q.args) > 0 {
		if q.filter != (jobFilter{}) {
			return usagef("-state, -owner, -pool, -name and -since select jobs of a list, not of %s", q.args[0])
		}
		return q.historyOf(ctx)
	}
	asked, err := q.filter.query(time.Now())
	if err != nil {
		return err
	}
	list, skipped, err := q.past().Histories(ctx, asked, q.limit)
	if err != nil {
		return err
	}
	for _, why := range skipped { // removed meanwhile, or damaged: list the others
		fmt.Fprintf(q.stderr, "mrsubmit history: %s\n", client.OneLine(why))
	}
	if q.json {
		if list == nil {
			list = []web.History{}
		}
		return q.printJSON(list)
	}
	rows := [][]string{{"JOB", "STATE", "ENDED", "ELAPSED", "OWNER", "NAME"}}
	for i := range list {
		p := &list[i]
		name := p.Name
		if p.Hidden {
			name = "(hidden)"
		}
		rows = append(rows, []string{p.ID, p.State, timeText(p.Ended), elapsedText(p.ElapsedMillis), p.Owner, name})
	}
	return q.printTable(rows)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// historyOf prints the history of a job, or of the ended jobs of a flow.
func (q *query) historyOf(ctx context.Context) error {
	ids, flow, err := q.firstIDs(ctx)
	if err != nil {
		return err
	}
	list := []*web.History{}
	for _, id := range ids {
		h, err := q.past().History(ctx, id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("%v has no history: it has not ended, never existed, or its history has expired", id)
		case err != nil && !errors.Is(err, admission.ErrNotAllowed):
			err = fmt.Errorf("history of %v: %w", id, err)
		}
		switch {
		case err == nil:
			h.Token = "" // for mrsubmit logs
			list = append(list, h)
		case flow:
			q.reportSkipped(err)
		default:
			return err
		}
	}
	switch {
	case q.json && flow:
		return q.printJSON(list)
	case q.json:
		return q.printJSON(list[0])
	}
	for _, h := range list {
		if err := q.printHistory(h); err != nil {
			return err
		}
	}
	return nil
}

func (q *query) printHistory(p *web.History) error {
	job, err := p.Status()
	if err != nil {
		return err
	}
	if err := client.PrintStatus(q.stdout, &job); err != nil {
		return err
	}
	fmt.Fprintf(q.stdout, "owner %s, submitted %s, ended %s\n", client.OneLine(p.Owner), timeText(p.Submitted), timeText(p.Ended))
	if p.Output != "" {
		fmt.Fprintf(q.stdout, "output %s\n", client.OneLine(p.Output))
	}
	if p.PlansLack != "" {
		fmt.Fprintf(q.stdout, "plans before %s are not known: %s\n", timeText(p.PlansSince), client.OneLine(p.PlansLack))
	}
	if p.UnlistedAttempts > 0 {
		fmt.Fprintf(q.stdout, "%s not listed\n", countText(p.UnlistedAttempts, "attempt"))
	}
	return q.printAttempts(p.Attempts, attemptRows(p.Attempts))
}

// printAttempts prints the rows for attempts.
func (q *query) printAttempts(attempts []web.Attempt, rows [][]string) error {
	err := q.printTable(rows)
	if err == nil && slices.ContainsFunc(attempts, func(a web.Attempt) bool { return isApproximate(&a) }) {
		_, err = fmt.Fprintln(q.stdout, "~ approximate: an earlier leader or an older version launched the attempt")
	}
	return err
}

func attemptRows(attempts []web.Attempt) [][]string {
	rows := [][]string{{"ATTEMPT", "STATE", "TRACKER", "LEVEL", "BEGAN", "TOOK", "ERROR"}}
	for i := range attempts {
		a := &attempts[i]
		state := a.State
		if a.Speculative {
			state += ", speculative"
		}
		rows = append(rows, []string{a.ID, state, a.Tracker, a.Level, beganText(a), elapsedText(a.TookMillis), firstLine(a.Error)})
	}
	return rows
}

// isApproximate reports whether the time at which an attempt began is known only approximately.
func isApproximate(a *web.Attempt) bool { return a.Launched.IsZero() && !a.Began.IsZero() }

// beganText formats the time at which an attempt began, with "~" in front if it is approximate.
func beganText(a *web.Attempt) string {
	if isApproximate(a) {
		return "~" + timeText(a.Began)
	}
	return timeText(a.Began)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
