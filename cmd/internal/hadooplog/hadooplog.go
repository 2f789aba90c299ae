// Package hadooplog writes what Hadoop's clients write about a job, for programs that parse it, such as mrjob.
//
// # Format
//
// A record is a line "2026-01-31 09:30:00,123 INFO mapreduce.Job: TEXT", and all lines up to the next record. The date is
// local. These records have Hadoop's texts:
//
//	INFO impl.YarnClientImpl: Submitted application application_1764000000000_0001
//	INFO mapreduce.Job: Running job: job_1764000000000_0001
//	INFO mapreduce.Job:  map 50% reduce 0%
//	INFO mapreduce.Job: Task Id : attempt_1764000000000_0001_m_000000_1000, Status : FAILED
//	INFO mapreduce.Job: Job job_1764000000000_0001 completed successfully
//	INFO mapreduce.Job: Counters: 20
//
// After Counters come the groups after a tab, and their counters after two. Some titles end with a blank, as Hadoop's do.
// The lines after a failed attempt have its error, and a line that looks like a Java frame: parsers find errors by it.
package hadooplog

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/wire"
)

// Log writes records.
type Log struct {
	To  io.Writer
	Now func() time.Time
}

// layout is the time of a record.
const layout = "2006-01-02 15:04:05,000"

// Loggers of Hadoop.
const (
	JobLogger       = "mapreduce.Job"
	yarnLogger      = "impl.YarnClientImpl"
	StreamingLogger = "streaming.StreamJob"
)

// Write writes a record in one write. Control characters of the text other than tab and newline are replaced.
func (l *Log) Write(level, logger, text string) {
	text = client.Visible(strings.TrimRight(text, "\n"))
	_, _ = fmt.Fprintf(l.To, "%s %s %s: %s\n", l.Now().Format(layout), level, logger, text) // a job does not end with the reader of its messages
}

func (l *Log) info(logger, format string, args ...any) {
	l.Write("INFO", logger, fmt.Sprintf(format, args...))
}

// Notes returns a writer of lines that are records of a logger.
func (l *Log) Notes(logger string) io.Writer { return notes{l, logger} }

type notes struct {
	log    *Log
	logger string
}

func (n notes) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if line = strings.TrimSpace(line); line != "" {
			n.log.Write("INFO", n.logger, line)
		}
	}
	return len(p), nil
}

// Application returns YARN's id for a job.
func Application(id wire.JobID) string { return "application" + strings.TrimPrefix(id.String(), "job") }

// ParseApplication is the inverse of [Application].
func ParseApplication(text string) (wire.JobID, error) {
	rest, ok := strings.CutPrefix(text, "application_")
	id, err := wire.ParseJobID("job_" + rest)
	if !ok || err != nil {
		return wire.JobID{}, fmt.Errorf("%w of an application: %q", wire.ErrBadID, text)
	}
	return id, nil
}

// Submitted writes that a job was submitted.
func (l *Log) Submitted(id wire.JobID) {
	l.info(yarnLogger, "Submitted application %s", Application(id))
}

// Attempt is a failed attempt.
type Attempt struct {
	ID    wire.AttemptID
	Error string
	Ended time.Time
}

// Job follows a job.
type Job struct {
	log     *Log
	failed  func(wire.JobID) []Attempt // the failed attempts so far
	begun   bool
	running bool
	ended   bool

	progress string
	at       time.Time // when progress was written

	all   []Attempt // that have failed
	known map[wire.AttemptID]bool
	seen  int // failed attempts in the last status
}

// NewJob makes a Job. failed returns the attempts of a job that have failed.
func NewJob(log *Log, failed func(wire.JobID) []Attempt) *Job {
	return &Job{log: log, failed: failed, known: make(map[wire.AttemptID]bool)}
}

// pause is the minimum time between two lines of progress.
const pause = time.Second

// Update writes what is new in a status.
func (j *Job) Update(s *wire.JobStatus) {
	if j.ended {
		return
	}
	if !j.begun {
		j.begun = true
		j.log.Submitted(s.ID)
		j.log.info(JobLogger, "Running job: %v", s.ID)
	}
	if ran := s.State == wire.Running || s.State == wire.Committing || s.State == wire.Succeeded; ran && !j.running {
		j.running = true
		j.log.info(JobLogger, "Job %v running in uber mode : false", s.ID)
		j.write(" map 0% reduce 0%")
	}
	j.attempts(s)
	if maps, reduces := client.Progress(s); j.running && (s.State.Ended() || j.log.Now().Sub(j.at) >= pause) {
		j.write(fmt.Sprintf(" map %d%% reduce %d%%", maps, reduces))
	}
	if s.State.Ended() {
		j.ended = true
		j.end(s)
	}
}

// write writes progress that differs from the last one.
func (j *Job) write(progress string) {
	if progress != j.progress {
		j.progress, j.at = progress, j.log.Now()
		j.log.info(JobLogger, "%s", progress)
	}
}

// attempts writes which attempts have failed.
func (j *Job) attempts(s *wire.JobStatus) {
	n := s.Maps.FailedAttempts + s.Reduces.FailedAttempts
	if n == j.seen && s.State != wire.Failed {
		return
	}
	j.seen = n
	for _, a := range j.failed(s.ID) {
		if !j.known[a.ID] {
			j.known[a.ID], j.all = true, append(j.all, a)
			j.log.info(JobLogger, "Task Id : %v, Status : FAILED\nError: %s", a.ID, ErrorText(a.Error))
		}
	}
}

// Failed returns the failed attempts that were written.
func (j *Job) Failed() []Attempt { return j.all }

// end writes the result of a job.
func (j *Job) end(s *wire.JobStatus) {
	if s.State == wire.Succeeded {
		j.log.info(JobLogger, "Job %v completed successfully", s.ID)
	} else {
		why := cmp.Or(s.Error, "no reason is known")
		if len(j.all) > 0 {
			why, _, _ = strings.Cut(why, "\n") // the rest is the error of an attempt, which is written already
			why = strings.TrimSuffix(why, "; the last lines of its standard error:")
		}
		j.log.info(JobLogger, "Job %v failed with state %s due to: %s", s.ID, strings.ToUpper(s.State.String()), why)
	}
	if len(s.Counters) > 0 {
		var text strings.Builder
		_ = client.PrintExactCounters(&text, s.Counters) // a Builder takes everything
		j.log.info(JobLogger, "%s", text.String())
	}
}

// frame looks like a frame of Java's stack to programs that parse errors.
const frame = "\tat quern.attempt(Native Method)"

var exitCode = regexp.MustCompile(`^.* subprocess failed with code (\d+)`)

// ErrorText returns the error of an attempt. If a command failed, Hadoop's words for it come first.
func ErrorText(text string) string {
	text = strings.TrimRight(text, "\n")
	first, rest, _ := strings.Cut(text, "\n")
	if m := exitCode.FindStringSubmatch(first); m != nil {
		return "java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code " + m[1] + "\n" + frame + "\n" + text
	}
	if rest != "" {
		rest = "\n" + rest
	}
	return "java.io.IOException: " + first + "\n" + frame + rest
}

// splitOf finds the split that the error of a failed command names.
var splitOf = regexp.MustCompile(`^.*; its split is (.+:\d+\+\d+)`)

// Syslog writes the log that Hadoop's framework writes for a failed attempt. Parsers find the input by its split.
func Syslog(to io.Writer, a Attempt) {
	l := Log{To: to, Now: func() time.Time { return a.Ended }}
	if m := splitOf.FindStringSubmatch(a.Error); m != nil {
		l.Write("INFO", "[main] org.apache.hadoop.mapred.MapTask", "Processing split: "+m[1])
	}
	l.Write("WARN", "[main] org.apache.hadoop.mapred.YarnChild", "Exception running child : "+ErrorText(a.Error))
}
