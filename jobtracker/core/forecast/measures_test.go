package forecast

import (
	"testing"
	"time"

	"github.com/quernmr/quern/history"
)

// TestWorkers checks that the first attempts on a tracker start processes, which stay after a
// success and end with a failure.
func TestWorkers(t *testing.T) {
	var m Measures
	const low, high = 3, 1000 // tracker numbers in different blocks
	incarnation := uint32(1)
	begins := func(tracker int32, cold bool) {
		t.Helper()
		if got := m.AttemptBegan(tracker, incarnation); got != cold {
			t.Errorf("a process is started: %v, want %v", got, cold)
		}
	}
	begins(low, true)
	begins(low, true)
	begins(high, true)
	m.AttemptEnded(low)
	begins(low, false)
	m.AttemptEnded(low)
	m.WorkerEnded(low)
	begins(low, true)
	m.AttemptEnded(low)
	m.AttemptEnded(low)
	incarnation++ // the tracker was lost
	begins(low, true)
	if m.Workers != 5 {
		t.Errorf("%d processes were started, not 5", m.Workers)
	}
}

func TestCount(t *testing.T) {
	var m Measures
	m.CountTask(Map, 1, 2*second, true)
	m.CountTask(Map, 1, 0, false)
	m.CountTask(Map, 200, 4*second, false)
	m.CountTask(Reduce, 1, 8*second, false)
	maps := &m.Phases[Map]
	if maps.All.Tasks != 3 || maps.All.Took != 6*second+minTaskTime || maps.Warm.Tasks != 2 || m.Phases[Reduce].All.Tasks != 1 {
		t.Errorf("%+v", m.Phases)
	}
	for tracker, want := range map[int32]history.Sum{
		1: {Tasks: 2, Took: 2*second + minTaskTime}, 200: {Tasks: 1, Took: 4 * second}, 2: {}, 5000: {},
	} {
		if got := m.TasksOn(tracker, Map); got != want {
			t.Errorf("tracker %d: %+v, not %+v", tracker, got, want)
		}
	}
}

func TestOverheads(t *testing.T) {
	var o Overheads
	o.AddClose(4 * second)
	o.AddClose(8 * second)
	o.AddSetUp(2 * second)
	if o.Close != 5*second || o.SetUp != 2*second {
		t.Errorf("%+v", o)
	}
	var m Measured
	for i := range 2 * fewWarm { // half of them start a process
		m.count(4*second+time.Duration(i%2)*4*second, i%2 == 1)
	}
	if o.AddWarmUp(&Measured{All: m.All}); o.WarmUp != 0 {
		t.Errorf("only tasks that start processes: it takes %v", o.WarmUp)
	}
	if o.AddWarmUp(&m); o.WarmUp < 2*second || o.WarmUp > 4*second {
		t.Errorf("starting a process takes %v, want a little less than 4s", o.WarmUp)
	}
	before := o.WarmUp
	for range 10 {
		o.AddWarmUp(&m)
	}
	if o.WarmUp <= before || o.WarmUp > 4*second {
		t.Errorf("after ten more jobs starting a process takes %v, before %v", o.WarmUp, before)
	}
	for _, c := range [][4]time.Duration{{5, 0, 100, 5}, {5, 98, 100, 3}, {5, 90, 100, 0}} {
		if got := Remaining(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("usual time %d, since %d, at %d: %d remain, want %d", c[0], c[1], c[2], got, c[3])
		}
	}
}
