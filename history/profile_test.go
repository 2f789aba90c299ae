package history

import (
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

func attempt(n int, kind wire.Kind, task int, tracker string, state wire.AttemptState, took int64) wire.AttemptStatus {
	return wire.AttemptStatus{
		Attempt: wire.AttemptID{Task: wire.TaskID{Job: job(n), Kind: kind, N: task}, N: 1000}, Tracker: tracker, State: state, Took: took,
		Reads: wire.Reads{Node: wire.Reading{Bytes: 5, Took: time.Second}},
	}
}

// TestProfile checks that a profile counts successful tasks, by phase and tracker.
func TestProfile(t *testing.T) {
	r := record(1)
	r.Job.Read.Total, r.Job.Shuffled.Total = 100, 50
	r.Attempts = []wire.AttemptStatus{
		attempt(1, wire.Setup, 0, "t1", wire.AttemptSucceeded, 100),
		attempt(1, wire.Map, 0, "t1", wire.AttemptSucceeded, 1000),
		attempt(1, wire.Map, 1, "t2", wire.AttemptFailed, 9000),
		attempt(1, wire.Map, 1, "t1", wire.AttemptSucceeded, 3000),
		attempt(1, wire.Map, 2, "t2", wire.AttemptSucceeded, 5000),
		attempt(1, wire.Reduce, 0, "t2", wire.AttemptSucceeded, 7000),
	}
	p := r.Profile()
	maps := &p.Phases[0]
	if maps.Tasks != 3 || maps.Mean() != 3*time.Second || maps.Trackers["t1"].Tasks != 2 || maps.Trackers["t2"].Took != 5*time.Second {
		t.Errorf("maps %+v", maps)
	}
	if want := math.Sqrt(8.0/3) / 3; math.Abs(maps.Deviation()-want) > 1e-9 {
		t.Errorf("maps deviate by %v, want %v", maps.Deviation(), want)
	}
	if reduces := &p.Phases[1]; reduces.Tasks != 1 || reduces.Mean() != 7*time.Second || reduces.Deviation() != 0.3 {
		t.Errorf("reduces %+v", reduces)
	}
	if p.Job != job(1) || p.Read != 100 || p.Shuffled != 50 || p.Reads.Node.Bytes != 15 {
		t.Errorf("%+v", p)
	}
}

// TestRecent checks that the recent time of a task forgets the first tasks.
func TestRecent(t *testing.T) {
	var s Sum
	for i, c := range []struct {
		tasks    int
		took     time.Duration
		from, to time.Duration // of Recent
	}{
		{1, 10 * time.Second, 10 * time.Second, 10 * time.Second},
		{1, 20 * time.Second, 15 * time.Second, 15 * time.Second},
		{window, time.Second, time.Second, 15 * time.Second},
		{10 * window, time.Second, time.Second, 1001 * time.Millisecond},
	} {
		for range c.tasks {
			s.Count(c.took)
		}
		if got := s.Recent(); got < c.from || got > c.to {
			t.Errorf("step %d: %v, want %v to %v", i, got, c.from, c.to)
		}
	}
}

// TestReadProfile checks that the first existing file is read. It must belong to the job
// and have a known version.
func TestReadProfile(t *testing.T) {
	f := mem.New(1 << 20)
	name := writeRecord(t, f, 1, firstDay)
	other := Name(staging, firstDay.AddDate(0, 0, 1), job(1))
	if p, err := ReadProfile(f, []string{other, name}, job(1)); err != nil || p.Job != job(1) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := ReadProfile(f, []string{other}, job(1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := ReadProfile(f, []string{name}, job(2)); !errors.Is(err, ErrNotHistory) {
		t.Errorf("of another job: %v", err)
	}
	if err := f.MkdirAll(dfs.Dir(other)); err != nil {
		t.Fatal(err)
	}
	data, err := encode(record(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := create(f, other, append([]byte("qhs9"), data[len(magic):]...)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadProfile(f, []string{other, name}, job(1)); !errors.Is(err, ErrNotHistory) || !strings.Contains(err.Error(), other) {
		t.Errorf("of another version: %v", err)
	}
}
