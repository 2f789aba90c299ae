package client

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/quernmr/quern/wire"
)

// TestDisplay runs the scenarios of testdata/display. Verbs:
//
//	begin [width=80] [output=URL]      a new display; with a width it is on a terminal
//	show at=SECONDS                    the jobs below, at that time; prints the output
//	note                               prints the line below
//	close
//
// The line of a job is N NAME STATE, then maps=DONE/TOTAL/RUNNING reduces=… read=DONE/TOTAL
// shuffled=… reduced=… failed=N error="…" waits="…" elapsed=… ends=… unknown="…" deadline=… sla=… (at a cost
// of 5) with=N flow=N. An end is a time, or EARLIEST-LIKELY-LATEST. ESC stands for the
// escape character, and CR for a return.
func TestDisplay(t *testing.T) {
	datadriven.Walk(t, "testdata/display", func(t *testing.T, path string) {
		var out bytes.Buffer
		var display *Display
		start := time.Unix(0, 0)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "begin":
				var width func() int
				if d.HasArg("width") {
					var columns int
					d.ScanArgs(t, "width", &columns)
					width = func() int { return columns }
				}
				outputs := make(map[wire.JobID]string)
				if d.HasArg("output") {
					var url string
					d.ScanArgs(t, "output", &url)
					outputs[wire.JobID{Start: 7, N: 1}] = url
				}
				display = NewDisplay(&out, width, outputs, start)
			case "show":
				var at float64
				d.ScanArgs(t, "at", &at)
				display.Update(start.Add(time.Duration(at*float64(time.Second))), parseJobs(t, d))
			case "note":
				display.Note(d.Input)
			case "close":
				display.Close()
			default:
				d.Fatalf(t, "unknown verb")
			}
			text := strings.NewReplacer("\x1b", "ESC", "\r", "CR").Replace(out.String())
			out.Reset()
			return text
		})
	})
}

func parseJobs(t *testing.T, d *datadriven.TestData) []wire.JobStatus {
	var jobs []wire.JobStatus
	for line := range strings.Lines(strings.ReplaceAll(d.Input, "ESC", "\x1b")) {
		job := wire.JobStatus{ID: wire.JobID{Start: 7}}
		var state string
		if _, err := fmt.Sscan(line, &job.ID.N, &job.Name, &state); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		for s := wire.Waiting; s <= wire.Killed; s++ {
			if s.String() == state {
				job.State = s
			}
		}
		for _, word := range quotedFields(line)[3:] {
			name, value, _ := strings.Cut(word, "=")
			var err error
			switch name {
			case "maps":
				_, err = fmt.Sscanf(value, "%d/%d/%d", &job.Maps.Done, &job.Maps.Total, &job.Maps.Running)
			case "reduces":
				_, err = fmt.Sscanf(value, "%d/%d/%d", &job.Reduces.Done, &job.Reduces.Total, &job.Reduces.Running)
			case "read":
				_, err = fmt.Sscanf(value, "%d/%d", &job.Read.Done, &job.Read.Total)
			case "shuffled":
				_, err = fmt.Sscanf(value, "%d/%d", &job.Shuffled.Done, &job.Shuffled.Total)
			case "reduced":
				_, err = fmt.Sscanf(value, "%d/%d", &job.Reduced.Done, &job.Reduced.Total)
			case "failed":
				_, err = fmt.Sscan(value, &job.Maps.FailedAttempts)
			case "elapsed":
				job.Elapsed, err = time.ParseDuration(value)
			case "ends":
				job.Prediction, err = parsePrediction(value)
			case "earliest":
				job.Prediction.Earliest, err = time.ParseDuration(value)
			case "unknown":
				job.Prediction.Unknown = strings.Trim(value, `"`)
			case "deadline":
				job.Settings.Deadline, err = time.ParseDuration(value)
			case "sla":
				step := wire.SLAStep{Cost: 5}
				step.After, err = time.ParseDuration(value)
				job.Settings.SLA = []wire.SLAStep{step}
			case "flow":
				job.Flow.Start = 7
				_, err = fmt.Sscan(value, &job.Flow.N)
			case "error":
				job.Error = strings.ReplaceAll(strings.Trim(value, `"`), `\n`, "\n")
			case "trouble":
				job.Troubles = append(job.Troubles, strings.ReplaceAll(strings.Trim(value, `"`), `\n`, "\n"))
			case "with":
				job.StoppedBy.Start = 7
				_, err = fmt.Sscan(value, &job.StoppedBy.N)
			case "waits":
				job.WaitReason = strings.Trim(value, `"`)
			case "counters":
				job.Counters = wire.Counters{}
				for c := range strings.SplitSeq(value, ",") {
					words := strings.Split(c, ":")
					var n int64
					_, err = fmt.Sscan(words[2], &n)
					job.Counters.Add(words[0], words[1], n)
				}
			default:
				d.Fatalf(t, "unknown word %q", word)
			}
			if err != nil {
				d.Fatalf(t, "%q: %v", word, err)
			}
		}
		jobs = append(jobs, job)
	}
	return jobs
}

// parsePrediction parses an end, or EARLIEST-LIKELY-LATEST.
func parsePrediction(text string) (p wire.Prediction, err error) {
	times := strings.Split(text, "-")
	if len(times) == 1 {
		times = []string{text, text, text}
	}
	for i, to := range []*time.Duration{&p.Earliest, &p.Likely, &p.Latest} {
		if *to, err = time.ParseDuration(times[i]); err != nil {
			return p, err
		}
	}
	return p, nil
}

// quotedFields splits a line at blanks outside quotes.
func quotedFields(line string) []string {
	quoted := false
	return strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && (r == ' ' || r == '\n')
	})
}

// TestBriefFailure: of a failed job of a program that prints the error itself, the display has only the first line.
func TestBriefFailure(t *testing.T) {
	var out bytes.Buffer
	display := NewDisplay(&out, nil, nil, time.Unix(0, 0))
	display.brief = true
	display.Update(time.Unix(1, 0), []wire.JobStatus{{ID: wire.JobID{Start: 7, N: 1}, Name: "step", State: wire.Failed, Error: "panic\n\nstack", Elapsed: time.Second}})
	if got, want := out.String(), "job_7_0001 step failed after 1.0s\n    panic\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSizesAndTimes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1 << 20: "1.0 MiB", 5 << 30: "5.0 GiB", 1 << 62: "4096.0 PiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %s, want %s", n, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 59400 * time.Millisecond: "59s", 59600 * time.Millisecond: "1m00s", 61 * time.Minute: "1h01m", 100 * time.Hour: "100h00m",
		168 * time.Hour: "7d0h", 60417*time.Hour + 55*time.Minute: "2517d9h",
	} {
		if got := shortTime(d); got != want {
			t.Errorf("shortTime(%v) = %s, want %s", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 1234567: "1ms", 999 * time.Millisecond: "999ms", 10240 * time.Millisecond: "10.2s", 59960 * time.Millisecond: "1m0s",
		61500 * time.Millisecond: "1m2s", time.Hour: "1h0m0s", 169 * time.Hour: "7d1h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %s, want %s", d, got, want)
		}
	}
	late := wire.JobStatus{State: wire.Running, Elapsed: 60417*time.Hour + 55*time.Minute, Settings: wire.Settings{Deadline: time.Second}}
	if got := DeadlineText(&late); got != "late by 2517d9h" {
		t.Errorf("a deadline long ago: %s", got)
	}
}

// TestGivenUp: status and report name the tasks that were given up, and the first causes.
func TestGivenUp(t *testing.T) {
	job := wire.JobStatus{ID: wire.JobID{Start: 1, N: 2}, Name: "j", State: wire.Succeeded, GivenUpTasks: "maps 3, 7-8; reduce 0",
		Maps: wire.TaskCounts{Total: 9, Done: 6, GivenUp: 3}, Reduces: wire.TaskCounts{Total: 2, Done: 1, GivenUp: 1}, GivenUp: []string{"bad\x1b line\nlog", "worse"}}
	var status, report bytes.Buffer
	if err := PrintStatus(&status, &job); err != nil {
		t.Fatal(err)
	}
	NewDisplay(&report, nil, nil, time.Time{}).Update(time.Time{}, []wire.JobStatus{job})
	want := "  given up, so their records are missing in the output: maps 3, 7-8; reduce 0\n    bad? line\n    worse\n    and 2 more\n"
	for _, text := range []string{status.String(), report.String()} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if want := "6 of 9 tasks, 3 tasks given up"; !strings.Contains(status.String(), want) {
		t.Errorf("%q lacks %q", status.String(), want)
	}
	if want := "map 100% shuffle 100% reduce 100%, 4 tasks given up"; !strings.Contains(report.String(), want) {
		t.Errorf("%q lacks %q", report.String(), want)
	}
}
