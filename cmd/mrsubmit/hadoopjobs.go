package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/cmd/internal/hadooplog"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// mapredJob answers mapred job.
func (t *tool) mapredJob(ctx context.Context, args []string) error {
	g, args, err := parseGeneric(args)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("want -list [all], -status JOB, -kill JOB, -counter JOB GROUP NAME or -history JOB")
	}
	option, args := args[0], args[1:]
	want := map[string]int{"-list": 0, "-status": 1, "-kill": 1, "-counter": 3, "-history": 1}
	n, known := want[option]
	all := option == "-list" && slices.Equal(args, []string{"all"})
	switch {
	case !known:
		return notAnswered("mapred job", option)
	case len(args) != n && !all:
		return usagef("%s has %d arguments, want %d", option, len(args), n)
	}
	q, err := t.hadoopQuery(g.JobTracker())
	if err != nil {
		return err
	}
	if q != nil {
		defer q.cluster.Close()
	}
	if option == "-list" {
		jobs, err := q.listed(ctx, all)
		if err != nil {
			return err
		}
		return hadooplog.Jobs(t.stdout, jobs)
	}
	id, err := wire.ParseJobID(args[0])
	if err != nil {
		return err
	}
	job, err := q.sought(ctx, id, "Could not find job "+args[0])
	if err != nil {
		return err
	}
	switch option {
	case "-status":
		return hadooplog.Status(t.stdout, job)
	case "-kill":
		return q.hadoopKill(ctx, job)
	case "-counter":
		_, err = fmt.Fprintln(t.stdout, hadooplog.Counter(job.Counters, args[1], args[2]))
		return err
	}
	failed, err := t.clusterFailures(q.cluster, q.identity).failed(ctx, id)
	if err != nil {
		return err
	}
	return hadooplog.History(t.stdout, job, failed)
}

// hadoopQuery connects to the job trackers of -jt or QUERN_JOBTRACKER; nil: there are none.
func (t *tool) hadoopQuery(jt string) (*query, error) {
	q := &query{tool: t, flags: newFlags("hadoop"), addresses: cmp.Or(jt, t.getenv("QUERN_JOBTRACKER"))}
	t.securityFlags(q.flags, &q.security)
	if q.addresses == "" || jt == "local" {
		return nil, nil
	}
	return q, q.connect()
}

// listed lists the jobs that have not ended, or all. Without a job tracker no job outlives its command.
func (q *query) listed(ctx context.Context, all bool) (jobs []wire.JobStatus, err error) {
	if q == nil {
		return nil, nil
	}
	var asked core.Query
	for s := wire.Waiting; s <= wire.Killed && !all; s++ {
		if !s.Ended() {
			asked.Filter.States = append(asked.Filter.States, s)
		}
	}
	list, err := q.cluster.Jobs(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i := range list {
		s, err := list[i].Status()
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, s)
	}
	return jobs, nil
}

// sought returns the status of a job. If there is no such job, it prints a message of Hadoop, and returns -1.
func (q *query) sought(ctx context.Context, id wire.JobID, message string) (*wire.JobStatus, error) {
	if q == nil {
		return nil, fmt.Errorf("%s: no job tracker is known: set QUERN_JOBTRACKER, or give -jt HOST:PORT", message)
	}
	job, err := q.job(ctx, id)
	if errors.Is(err, admission.ErrUnknownJob) {
		fmt.Fprintln(q.stdout, message)
		return nil, exitCode(exitHadoopUsage)
	}
	return &job, err
}

// hadoopKill kills a job as the user of this command; the job tracker decides whether that user may.
func (q *query) hadoopKill(ctx context.Context, job *wire.JobStatus) error {
	message := ""
	switch job.State {
	case wire.Failed:
		message = fmt.Sprintf("Could not mark the job %v as killed, as it has already failed.", job.ID)
	case wire.Killed:
		message = fmt.Sprintf("The job %v has already been killed.", job.ID)
	case wire.Succeeded:
		message = fmt.Sprintf("Could not kill the job %v, as it has already succeeded.", job.ID)
	}
	if message != "" {
		fmt.Fprintln(q.stdout, message)
		return exitCode(exitHadoopUsage)
	}
	if err := q.cluster.Kill(ctx, job.ID, "killed by "+q.user()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(q.stdout, "Killed job %v\n", job.ID)
	return err
}

// activeStates are the states of YARN that yarn application -list shows, unless -appStates names others.
var activeStates = []string{"SUBMITTED", "ACCEPTED", "RUNNING"}

// yarnApplication answers yarn application.
func (t *tool) yarnApplication(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usagef("want -list [-appStates STATES] [-appTypes TYPES], -status APPLICATION or -kill APPLICATION…")
	}
	option, args := args[0], args[1:]
	q, err := t.hadoopQuery("")
	if err != nil {
		return err
	}
	if q != nil {
		defer q.cluster.Close()
	}
	switch {
	case option == "-list":
		states, err := listedStates(args)
		if err != nil {
			return err
		}
		return q.applications(ctx, t.stdout, states)
	case option == "-status" && len(args) == 1, option == "-kill" && len(args) > 0:
	case instead("yarn application "+option) != "":
		return notAnswered("yarn application", option)
	default:
		return usagef("%s is not answered: want -list [-appStates STATES] [-appTypes TYPES], -status APPLICATION or -kill APPLICATION…", strings.Join(append([]string{option}, args...), " "))
	}
	for _, arg := range args {
		id, err := hadooplog.ParseApplication(arg)
		if err != nil {
			return usagef("%v", err)
		}
		job, err := q.sought(ctx, id, fmt.Sprintf("Application with id '%s' doesn't exist in RM.", arg))
		switch {
		case err != nil:
		case option == "-status":
			err = hadooplog.Report(t.stdout, job)
		case job.State.Ended():
			_, err = fmt.Fprintf(t.stdout, "Application %s has already finished \n", arg)
		default:
			fmt.Fprintf(t.stdout, "Killing application %s\n", arg)
			err = q.cluster.Kill(ctx, id, "killed by "+q.user())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// listedStates parses the options of yarn application -list. All applications have the type MAPREDUCE; none is listed for others.
func listedStates(args []string) (states []string, err error) {
	states, none := activeStates, false
	for ; len(args) > 1; args = args[2:] {
		values := strings.Split(strings.ToUpper(args[1]), ",")
		switch args[0] {
		case "-appStates":
			states = values
		case "-appTypes":
			none = !slices.Contains(values, "MAPREDUCE")
		default:
			return nil, usagef("option %s of yarn application -list is not supported: want -appStates, -appTypes", args[0])
		}
	}
	if len(args) > 0 {
		return nil, usagef("option %s of yarn application -list is not supported, or needs a value: want -appStates, -appTypes", args[0])
	}
	if none {
		return nil, nil
	}
	return states, nil
}

// applications lists the jobs that are in states of YARN.
func (q *query) applications(ctx context.Context, to io.Writer, states []string) error {
	jobs, err := q.listed(ctx, !slices.Equal(states, activeStates))
	if err != nil {
		return err
	}
	if !slices.Contains(states, "ALL") {
		jobs = slices.DeleteFunc(jobs, func(j wire.JobStatus) bool { return !slices.Contains(states, hadooplog.ApplicationState(j.State)) })
	}
	return hadooplog.Applications(to, states, jobs)
}

// yarnLogs answers yarn logs -applicationId APPLICATION [-log_files NAMES]: the logs on the task trackers or, without a
// job tracker, those that a failed job has left.
func (t *tool) yarnLogs(ctx context.Context, args []string) error {
	app, names, err := logOptions(args)
	if err != nil {
		return err
	}
	id, err := hadooplog.ParseApplication(app)
	if err != nil {
		return usagef("-applicationId: %v", err)
	}
	q, err := t.hadoopQuery("")
	switch {
	case err != nil:
		return err
	case q == nil:
		return t.savedLogs(app, names)
	}
	defer q.cluster.Close()
	if _, err := q.sought(ctx, id, "Can not find the logs for the application: "+app); err != nil {
		return err
	}
	return q.applicationLogs(ctx, id, names)
}

// logOptions parses the options of yarn logs: an application, and names of logs.
func logOptions(args []string) (app string, names []string, err error) {
	names = streams()
	for ; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return "", nil, usagef("option %s needs a value", args[0])
		}
		switch args[0] {
		case "-applicationId":
			app = args[1]
		case "-log_files":
			names = strings.Split(args[1], ",")
		case "-appOwner": // the task trackers know the owner
		default:
			return "", nil, usagef("%s is not answered: want -applicationId APPLICATION [-log_files stdout,stderr]", args[0])
		}
	}
	return app, names, nil
}

// applicationLogs prints the logs of a job's attempts. The task trackers check that the user may read them.
func (q *query) applicationLogs(ctx context.Context, id wire.JobID, names []string) error {
	all, err := q.attempts(ctx, id)
	if err != nil {
		return err
	}
	if all.Token == "" {
		return noToken(id)
	}
	r := q.newLogReader(all.Token)
	defer r.http.CloseIdleConnections()
	for i := range all.Items {
		a := &all.Items[i]
		for _, name := range names {
			if !slices.Contains(streams(), name) {
				continue
			}
			body, _, err := r.open(ctx, a, name, logPart{})
			if err != nil {
				r.failed++
				fmt.Fprintf(q.stderr, "yarn logs: %s %s: %v\n", a.ID, name, errorText(err))
				continue
			}
			l := hadooplog.LogFile{Attempt: a.ID, Tracker: a.Tracker, Name: name, Size: body.size, Running: a.State == wire.AttemptRunning.String(),
				Modified: a.Began.Add(time.Duration(a.TookMillis) * time.Millisecond)}
			err = l.Copy(q.stdout, body)
			body.Close()
			if err != nil {
				return err
			}
		}
	}
	if r.failed > 0 {
		return errReported
	}
	return nil
}

// savedLogs prints the logs that saveLogs has written.
func (t *tool) savedLogs(app string, names []string) error {
	dir := filepath.Join(t.logDir(), "userlogs", app)
	attempts, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || t.logDir() == "" {
		fmt.Fprintf(t.stdout, "Can not find the logs for the application: %s with the appOwner: %s\n", app, userName(nil, t.getenv))
		return exitCode(exitHadoopUsage)
	}
	if err != nil {
		return err
	}
	for _, a := range attempts {
		for _, name := range names {
			err := t.savedLog(a.Name(), filepath.Join(dir, a.Name(), filepath.Base(name)))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func (t *tool) savedLog(attempt, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	l := hadooplog.LogFile{Attempt: attempt, Tracker: "localhost", Name: filepath.Base(path), Size: info.Size(), Modified: info.ModTime()}
	return l.Copy(t.stdout, f)
}
