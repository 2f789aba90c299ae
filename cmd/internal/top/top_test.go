package top

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/jobtracker/web"
)

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// example returns a Model with jobs and a cluster.
func example() Model {
	now := time.UnixMilli(100_000)
	m := New(now, true)
	m.width, m.height = 130, 14
	for _, msg := range []message{
		Jobs{now.Add(-2 * time.Second), []web.Job{
			{ID: "job_7_0001", Name: "words", State: "running", Owner: "ann", ElapsedMillis: 60_000, Maps: web.Tasks{Done: 3, Total: 8, Running: 2},
				Settings: web.Settings{Pool: "etl", Priority: "NORMAL", DeadlineMillis: 65_000}, Prediction: &web.Prediction{EarliestMillis: 66_000, LikelyMillis: 90_000, LatestMillis: 120_000}},
			{ID: "job_7_0002", Name: "so\x1b[2Jrt", State: "waiting", Owner: "bob", ElapsedMillis: 5_000, Settings: web.Settings{Pool: "default", Priority: "NORMAL"}},
			{ID: "job_7_0003", Name: "old", State: "failed", Owner: "bob", Settings: web.Settings{Pool: "default", Priority: "NORMAL"}},
		}},
		Status{&web.Cluster{Leader: "jt1", IsLeader: true, Epoch: 3, Scheduling: web.Scheduling{Scheduler: "flex", Metric: "sum-response", Delay: "dynamic"}, Trackers: []web.Tracker{
			{ID: "t1", Host: "h1", MapSlots: 4, ReduceSlots: 2, Maps: 2, Connected: true},
			{ID: "t2", Host: "h2", MapSlots: 4, ReduceSlots: 2, Connected: false},
		}}},
	} {
		m = m.Update(msg)
	}
	return m
}

// press presses keys, which are separated by spaces.
func press(m Model, keys string) Model {
	for name := range strings.FieldsSeq(keys) {
		m = m.Update(Key(name))
	}
	return m
}

// rows returns the first words of the table's rows.
func rows(m Model) string {
	var first []string
	for line := range strings.Lines(escapes.ReplaceAllString(m.Text(), "")) {
		if word, _, _ := strings.Cut(line, " "); strings.HasPrefix(word, "job_") || strings.HasPrefix(word, "t1") || strings.HasPrefix(word, "t2") {
			first = append(first, word)
		}
	}
	return strings.Join(first, " ")
}

func TestScreen(t *testing.T) {
	got := escapes.ReplaceAllString(example().Text(), "")
	for _, want := range []string{
		"jt1 leads, epoch 3; flex sum-response, delay dynamic; jobs: 1 waiting, 1 running\n",
		"maps    [##########------------------------------] 2 of 8 slots\n", "reduces [----------------------------------------] 0 of 4 slots\n",
		"task trackers: 2, of them 1 not in use; 0 lost\n",
		"JOB         STATE    POOL     MAPS    REDUCES  ELAPSED  ENDS",
		"job_7_0001  running  etl      3/8 +2  0/0      1m2s     in 28s (4s to 58s), late", "ann    words\n",
		"job_7_0002  waiting  default  0/0     0/0      7s       -", "so?[2Jrt",
		"q quit  s sort: newest  r reverse  / filter  e show ended  t trackers",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the screen lacks %q:\n%s", want, got)
		}
	}
}

func TestKeys(t *testing.T) {
	for keys, want := range map[string]string{
		"":                   "job_7_0002 job_7_0001",
		"r":                  "job_7_0001 job_7_0002",
		"s":                  "job_7_0001 job_7_0002", // by their ends
		"s r":                "job_7_0002 job_7_0001",
		"e":                  "job_7_0003 job_7_0002 job_7_0001",
		"/ w o r d":          "job_7_0001",
		"/ w x backspace":    "job_7_0002 job_7_0001", // waiting, words
		"/ E T L enter":      "job_7_0001",
		"/ a n n enter esc":  "job_7_0002 job_7_0001",
		"/ a n n esc":        "job_7_0002 job_7_0001",
		"t":                  "t1 t2",
		"t t":                "job_7_0002 job_7_0001",
		"down down down":     "job_7_0002 job_7_0001", // they fit
		"e s s s":            "job_7_0003 job_7_0002 job_7_0001",
		"/ n o t h i n g":    "",
		"pgdown pgdown t up": "t1 t2",
	} {
		if m := press(example(), keys); rows(m) != want {
			t.Errorf("%q: %q, want %q", keys, rows(m), want)
		}
	}
	if !press(example(), "q").quit || !press(example(), "/ w ctrl+c").quit {
		t.Error("q or ctrl+c does not quit")
	}
	if m := press(example(), "/ q"); m.quit || !strings.Contains(m.Text(), "filter: q_") {
		t.Error("q quits while a filter is typed")
	}
}

// TestTrouble: the screen says that there is no news, until there is.
func TestTrouble(t *testing.T) {
	m := example().Update(Trouble{"no leader\n"})
	if got := m.Text(); !strings.Contains(got, "\x1b[31mno leader?\x1b[m") {
		t.Errorf("the screen is %q", got)
	}
	m = m.Update(Jobs{time.UnixMilli(100_000), nil})
	if got := m.Text(); strings.Contains(got, "no leader") {
		t.Errorf("the screen is %q", got)
	}
	if got := New(time.Time{}, false).Text(); !strings.Contains(got, "connecting") {
		t.Errorf("the first screen is %q", got)
	}
}

// TestFits: no terminal is too small for the screen, and no text has control characters.
func TestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := example()
		var jobs []web.Job
		for i := range rapid.IntRange(0, 60).Draw(t, "jobs") {
			jobs = append(jobs, web.Job{ID: fmt.Sprintf("job_8_%04d", i+1), Name: rapid.String().Draw(t, "name"), State: "running", Owner: rapid.StringN(0, 20, -1).Draw(t, "owner"), Settings: web.Settings{Priority: "NORMAL"}})
		}
		width, height := rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 60).Draw(t, "height")
		m = m.Update(Jobs{m.now, jobs})
		m.width, m.height = width, height
		for range rapid.IntRange(0, 12).Draw(t, "keys") {
			m = press(m, rapid.SampledFrom([]string{"s", "r", "e", "t", "/", "x", "down", "pgdown", "up", "enter", "esc"}).Draw(t, "key"))
		}
		lines := strings.Split(escapes.ReplaceAllString(m.Text(), ""), "\n")
		if len(lines) > height {
			t.Fatalf("%d lines on a terminal of %d", len(lines), height)
		}
		for _, line := range lines {
			if got := runewidth.StringWidth(line); got > width {
				t.Fatalf("a line of %d columns on a terminal of %d: %q", got, width, line)
			}
			if strings.ContainsAny(line, "\x1b\r\a\t") {
				t.Fatalf("%q has control characters", line)
			}
		}
	})
}
