package main

import (
	"strings"
	"testing"
	"time"
)

// TestComplete: the last word is completed by command, flag and position.
func TestComplete(t *testing.T) {
	f := newFake(t)
	for _, c := range []struct{ line, want string }{ // the texts of the choices; words are separated by one space
		{"wa", "wait"},
		{"nothing ", ""},
		{"help clu", "cluster"},
		{"help cluster re", "readmit remove"},
		{"help list ", ""},
		{"cluster sch", "scheduler"},
		{"cluster -js", "-json"},
		{"cluster nothing ", ""},
		{"list -s", "-since -state"},
		{"list --s", "--since --state"},
		{"list -state fail", "failed"},
		{"list -state failed,kil", "failed,killed"},
		{"list -state=running,fail", "-state=running,failed"},
		{"list -owner ", "ann"},
		{"list -pool ", "default etl"},
		{"list -json -name wo", "words"},
		{"list -name so", "soon"}, // another name has a control character
		{"list ", ""},
		{"status ", "job_7_0003 job_7_0004 job_7_0002 job_7_0001"},
		{"status job_7_0001 ", ""},
		{"kill -reason job_7_0002 job_7_0", "job_7_0004 job_7_0002"},
		{"kill -reason ", ""},
		{"kill job_7_0002 ", "job_7_0004 job_7_0002"},
		{"logs job_7_0001 task", "task_7_0001_m_000000 task_7_0001_m_000001"},
		{"logs job_7_0001 attempt_7_0001_m_000001", "attempt_7_0001_m_000001_1000"},
		{"logs nonsense ", ""},
		{"kill-attempt ", "attempt_7_0002_m_000003_1000"},
		{"attempts -state run", "running"},
		{"set job_7_0002 w", "weight="},
		{"set job_7_0002 pool=e", "pool=etl"},
		{"set job_7_0002 priority=LOW pr", "priority="},
		{"cluster scheduler s", "splitsrpt srpt"},
		{"cluster scheduler -delay ", "none fixed=3s paper dynamic"},
		{"cluster readmit t", "t1 t2"},
		{"cluster remove ", "jt1 jt2"},
		{"cluster certs -cl", "-client"},
		{"cluster certs -tls", ""},
		{"run ", ":files"},
		{"run -tls-dir ", ":files"},
		{"run -priority V", "VERY_LOW VERY_HIGH"},
		{"run ./job -pr", ":files"},
		{"run -D a=b -po", "-pool"},
		{"completion z", "zsh"},
		{"fs -l", "-ls -lsr"},
		{"fs -fs hdfs://n -te", "-test -text"},
		{"fs -fs=hdfs://n -te", "-test -text"},
		{"fs -fs ", ""},
		{"fs -rm -sk", "-skipTrash :files"},
		{"kill -jobtracker nonsense job", ""},
	} {
		f.wantChoices(t, c.line, c.want)
	}
	defer func(was time.Duration) { completePatience = was }(completePatience)
	completePatience = time.Millisecond
	f.wantChoices(t, "kill -jobtracker 127.0.0.1:1 job", "")
}

func (f *fakeJobTracker) wantChoices(t *testing.T, line, want string) {
	t.Helper()
	args := append([]string{completeCommand, "whole"}, strings.Split(line, " ")...)
	code, stdout, stderr := f.run(t, args...)
	var got []string
	for line := range strings.Lines(stdout) {
		text, _, _ := strings.Cut(line, "\t")
		got = append(got, text)
	}
	if code != 0 || stderr != "" || strings.Join(got, " ") != want {
		t.Errorf("%q: exit code %d, %q, want %q; stderr %q", line, code, got, want, stderr)
	}
}

func TestJoinWords(t *testing.T) {
	for words, want := range map[string]string{
		"a b": "a b", "-m = x": "-m=x", "-m =": "-m=", "-j h : 1,g : 2": "-j h:1,g:2", "a = b =": "a=b=", ": x": ":x", "": "",
	} {
		joined, kept := joinWords(strings.Split(words, " "))
		last := joined[len(joined)-1]
		if got := strings.Join(joined, " "); got != want || kept != 1+strings.LastIndexAny(last, "=:") {
			t.Errorf("%q: %q, keeps %d bytes of %q", words, got, kept, last)
		}
	}
}

// TestExamples: each command has examples, and they parse.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	f := newFake(t)
	for _, c := range append(commands(), clusterCommands()...) {
		if len(c.examples) == 0 {
			t.Errorf("mrsubmit %s has no examples", c.name)
		}
		for _, example := range c.examples {
			if !strings.HasPrefix(example, c.name) {
				t.Errorf("mrsubmit %s: an example of another command: %s", c.name, example)
			}
			if c.name == "ui" { // it runs until it is interrupted
				example += " -h"
			}
			if code, _, stderr := f.run(t, splitQuoted(example)...); code == exitUsage {
				t.Errorf("mrsubmit %s: %s", example, stderr)
			}
		}
	}
}

// splitQuoted splits a line at spaces that are not between single quotes.
func splitQuoted(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// TestMeant: errors name what a mistyped word stands for.
func TestMeant(t *testing.T) {
	f := newFake(t)
	for args, want := range map[string]string{
		"lits":                             `unknown command "lits" (did you mean list?)`,
		"-list":                            `unknown command "-list" (did you mean list?)`,
		"submit":                           `unknown command "submit" (did you mean run?)`,
		"frobnicate":                       `unknown command "frobnicate"; see`,
		"cluster drian t1":                 `unknown subcommand "drian" (did you mean cluster drain?)`,
		"kill -reasons x job_7_0002":       "unknown flag -reasons (did you mean -reason?)",
		"kill -xyz job_7_0002":             "unknown flag -xyz; see",
		"set job_7_0002 prio=HIGH":         "(did you mean priority?)",
		"cluster scheduler flx":            "(did you mean flex?)",
		"cluster scheduler -metric sum-sl": "(did you mean sum-sla?)",
		"cluster scheduler -delay dynamik": "(did you mean dynamic?)",
		"list -state runing":               "(did you mean running?)",
	} {
		if code, _, stderr := f.run(t, strings.Fields(args)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, stderr, want)
		}
	}
}

// TestColors: the text of a colored table without its colors is the plain table.
func TestColors(t *testing.T) {
	rows := [][]string{{"JOB", "STATE", "ENDS", "STATEMENT"}, {"ü", "failed", "late by 2m", "failed"}, {"job_2", "running, suspended", "-", "x"}}
	text := "JOB    STATE               ENDS        STATEMENT\nü      failed              late by 2m  failed\njob_2  running, suspended  -           x\n"
	got := string(coloredTable(rows, text))
	want := "\x1b[1mJOB    STATE               ENDS        STATEMENT\x1b[m\nü      \x1b[31mfailed\x1b[m              \x1b[31mlate by 2m\x1b[m  failed\njob_2  \x1b[36mrunning, suspended\x1b[m  -           x\n"
	if got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}
