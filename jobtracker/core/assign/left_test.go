package assign

import (
	"testing"
	"time"

	"github.com/quernmr/quern/locality"
)

// idleWorld has what passIdle has counted.
type idleWorld struct {
	total time.Duration // of free map slots
	left  int           // jobs that have left slots, summed over rounds
}

// passIdle counts, slot by slot, what a job leaves while time passes: at least the slots for which it has
// maps all the time, at most all free ones.
func (w *world) passIdle(passed time.Duration) {
	free := 0
	for _, t := range w.trackers {
		if t.takesWork && !t.isHeld {
			free += max(t.Free(Map), 0)
		}
	}
	w.idle.total += time.Duration(free) * passed
	for _, j := range w.jobs {
		if j.deferred && j.left.waiting {
			j.mostLeft += time.Duration(free) * passed
			j.leastLeft += time.Duration(min(free, j.Pending())) * passed
		}
	}
}

func (w *world) checkLeft() {
	if got := w.a.idle.until(w.now); got != w.idle.total {
		w.t.Fatalf("map slots were free for %v, want %v", got, w.idle.total)
	}
	for _, j := range w.jobs {
		left := w.a.LeftSlots(&j.Job, w.now)
		if left < j.leastLeft || left > j.mostLeft {
			w.t.Fatalf("job %d has left slots for %v, want %v to %v", j.number, left, j.leastLeft, j.mostLeft)
		}
		if left > 0 {
			w.idle.left++
		}
	}
}

// TestLeftSlots tests what a job leaves of two free slots while it waits: one slot if it has one map.
func TestLeftSlots(t *testing.T) {
	for _, maps := range []int{1, 3} {
		w := &world{t: t, now: time.Second}
		w.a = New(w, time.Second)
		w.a.SetRule(locality.Rule{Kind: locality.Fixed, Delay: 10 * time.Second})
		for i, host := range []string{"h1", "h2"} {
			x := &simTracker{host: host, rack: "/r", takesWork: true}
			w.a.AddTracker(&x.Tracker, x, host, [2]int{2 * i, 0})
			w.trackers = append(w.trackers, x)
			w.setTakesWork(x)
		}
		j := &simJob{runs: make(map[int]*simTracker), splits: make([]Split, maps)}
		w.a.AddJob(&j.Job, 1, j)
		w.jobs = append(w.jobs, j)
		for m := range j.splits {
			j.splits[m] = Split{Bytes: 1, Hosts: []string{"h1"}, Racks: []string{"/r"}}
			w.a.AddPending(&j.Job, m)
		}
		w.locate(j)
		w.a.AssignMaps()
		if _, ok := j.Deferred(); !ok {
			t.Fatal("the job with maps on h1 does not wait while h2 has free slots")
		}
		w.now += 3 * time.Second
		want := time.Duration(min(maps, 2)) * 3 * time.Second
		if got := w.a.LeftSlots(&j.Job, w.now); got != want {
			t.Errorf("%d maps: the job has left slots for %v, want %v", maps, got, want)
		}
		w.a.Clear(&j.Job)
		w.now += time.Second
		if got := w.a.LeftSlots(&j.Job, w.now); got != want {
			t.Errorf("%d maps: after its wait, the job has left slots for %v, want %v", maps, got, want)
		}
	}
}
