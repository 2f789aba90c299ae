package hadooplog

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// followed returns what a Job writes about statuses that come a second after each other.
func followed(failed []Attempt, statuses ...wire.JobStatus) string {
	var b strings.Builder
	now := time.Date(2026, 1, 31, 9, 30, 0, 123e6, time.UTC)
	j := NewJob(&Log{To: &b, Now: func() time.Time { return now }}, func(wire.JobID) []Attempt { return failed })
	for i := range statuses {
		j.Update(&statuses[i])
		now = now.Add(pause)
	}
	return b.String()
}

var id = wire.JobID{Start: 1764000000000, N: 1}

// TestJob: the records of a job that succeeds, to the byte. The titles of Hadoop have their trailing blanks.
func TestJob(t *testing.T) {
	counts := func(done int) wire.TaskCounts { return wire.TaskCounts{Total: 2, Done: done} }
	status := func(state wire.State, maps, reduces int) wire.JobStatus {
		return wire.JobStatus{ID: id, State: state, Maps: counts(maps), Reduces: counts(reduces)}
	}
	ended := status(wire.Succeeded, 2, 2)
	ended.Counters = wire.Counters{
		wire.TaskCounters:   {wire.MapInputRecords: 3, wire.ShuffledMaps: 2},
		wire.JobCounters:    {wire.LaunchedMaps: 2},
		wire.InputCounters:  {wire.BytesRead: 10},
		wire.OutputCounters: {wire.BytesWritten: 20},
		"words":             {"kept": 4, "a\x1bb": -1},
	}
	got := followed(nil, status(wire.Waiting, 0, 0), status(wire.Running, 0, 0), status(wire.Running, 1, 0), status(wire.Running, 1, 0), ended, ended)
	const want = `2026-01-31 09:30:00,123 INFO impl.YarnClientImpl: Submitted application application_1764000000000_0001
2026-01-31 09:30:00,123 INFO mapreduce.Job: Running job: job_1764000000000_0001
2026-01-31 09:30:01,123 INFO mapreduce.Job: Job job_1764000000000_0001 running in uber mode : false
2026-01-31 09:30:01,123 INFO mapreduce.Job:  map 0% reduce 0%
2026-01-31 09:30:02,123 INFO mapreduce.Job:  map 50% reduce 0%
2026-01-31 09:30:04,123 INFO mapreduce.Job:  map 100% reduce 100%
2026-01-31 09:30:04,123 INFO mapreduce.Job: Job job_1764000000000_0001 completed successfully
2026-01-31 09:30:04,123 INFO mapreduce.Job: Counters: 7
	Job Counters ·
		Launched map tasks=2
	Map-Reduce Framework
		Map input records=3
		Shuffled Maps =2
	words
		a?b=-1
		kept=4
	File Input Format Counters ·
		Bytes Read=10
	File Output Format Counters ·
		Bytes Written=20
`
	if want := strings.ReplaceAll(want, "·", ""); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestFailedJob: each failed attempt is written once. An error can begin no record and end none.
func TestFailedJob(t *testing.T) {
	attempt := Attempt{ID: wire.AttemptID{Task: wire.TaskID{Job: id, Kind: wire.Map}, N: 1000}, Error: "the mapper \"x\" subprocess failed with code 3; the last lines of its standard error:\nsorry\x1b\n"}
	status := wire.JobStatus{ID: id, State: wire.Failed, Maps: wire.TaskCounts{Total: 1, FailedAttempts: 1}, Error: "task failed: subprocess failed with code 3; the last lines of its standard error:\nsorry"}
	running := status
	running.State = wire.Running
	got := followed([]Attempt{attempt}, running, running, status)
	const want = `: Task Id : attempt_1764000000000_0001_m_000000_1000, Status : FAILED
Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code 3
	at quern.attempt(Native Method)
the mapper "x" subprocess failed with code 3; the last lines of its standard error:
sorry\x1b
2026`
	if strings.Count(got, want) != 1 || strings.Count(got, "Task Id") != 1 || !strings.HasSuffix(got, "failed with state FAILED due to: task failed: subprocess failed with code 3\n") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	var ofSplit strings.Builder
	Syslog(&ofSplit, Attempt{ID: attempt.ID, Error: "the mapper \"x\" subprocess failed with code 3; its split is file:///a b:0+5; the last lines of its standard error:\nsorry"})
	if text := ofSplit.String(); !regexp.MustCompile(`(?m)^\S+ \S+ INFO \[main\] \S+: Processing split: file:///a b:0\+5$`).MatchString(text) {
		t.Errorf("%q", text)
	}
	var syslog strings.Builder
	Syslog(&syslog, Attempt{ID: attempt.ID, Error: "the disk is full\nreally"})
	java := regexp.MustCompile(`(?m)\s+at .*\((.*\.(java|scala):\d+|Native Method)\)$`) // mrjob's pattern
	if text := syslog.String(); !java.MatchString(text) || !strings.Contains(text, "java.io.IOException: the disk is full\n") || !strings.HasSuffix(text, "\nreally\n") {
		t.Errorf("%q", text)
	}
}

// TestApplication: ids of applications and jobs have the same numbers.
func TestApplication(t *testing.T) {
	if got, err := ParseApplication(Application(id)); got != id || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "job_1_0001", "application_1", "application_1_1", "application_job_1_0001"} {
		if got, err := ParseApplication(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestLogFile has the layout that Hadoop 3.4.2's LogToolUtils writes.
func TestLogFile(t *testing.T) {
	for _, c := range []struct {
		log  LogFile
		want string
	}{
		{LogFile{Attempt: "a_1", Tracker: "t1", Name: "stderr", Modified: time.Date(2026, 1, 3, 9, 30, 0, 0, time.UTC), Size: 5},
			"Container: a_1 on t1\nLogAggregationType: AGGREGATED\n====================\nLogType:stderr\nLogLastModifiedTime:Sat Jan 03 09:30:00 +0000 2026\nLogLength:5\nLogContents:\nboom\n\n" +
				"End of LogType:stderr\n***********************************************************************\n\n"},
		{LogFile{Attempt: "a_1", Name: "stdout", Modified: time.Date(2026, 1, 23, 9, 30, 0, 0, time.UTC), Size: -1, Running: true},
			"Container: a_1 on N/A\nLogAggregationType: LOCAL\n=====================\nLogType:stdout\nLogLastModifiedTime:Fri Jan 23 09:30:00 +0000 2026\nLogContents:\nboom\n\n" +
				"End of LogType:stdout\n***********************************************************************\n\n"},
	} {
		var b strings.Builder
		if err := c.log.Copy(&b, strings.NewReader("boom\n")); err != nil || b.String() != c.want {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), c.want)
		}
	}
}
