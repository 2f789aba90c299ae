package assign

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/scheduler/pool"
	"pgregory.net/rapid"
)

// setOffer gives a tracker of a world another offer. Half of the worlds have no room to offer.
func (w *world) setOffer(t *simTracker) {
	if w.rooms {
		t.offers = Room{Memory: []int64{0, 2, 4, 8}[w.rnd.IntN(4)], Cores: []int{0, 0, 2, 4}[w.rnd.IntN(4)]}
		w.a.SetOffer(&t.Tracker, t.offers)
	}
}

func (w *world) setRequests(j *simJob) {
	if w.rooms {
		for phase := range j.requests {
			j.requests[phase] = Room{Memory: []int64{0, 1, 3, 6, 9}[w.rnd.IntN(5)], Cores: []int{0, 0, 1, 3}[w.rnd.IntN(4)]}
		}
		w.a.SetRequests(&j.Job, j.requests)
	}
}

// used adds up what runs on a tracker, by the lists of the world.
func (w *world) used(t *simTracker) (sum Room) {
	for _, j := range w.jobs {
		for _, on := range j.runs {
			if on == t {
				sum.Memory, sum.Cores = sum.Memory+j.requests[Map].Memory, sum.Cores+j.requests[Map].Cores
			}
		}
		for _, on := range j.reduces {
			if on == t {
				sum.Memory, sum.Cores = sum.Memory+j.requests[Reduce].Memory, sum.Cores+j.requests[Reduce].Cores
			}
		}
	}
	return sum
}

// fitsNow is the simple form of hasRoom: it adds up everything again.
func (w *world) fitsNow(j *simJob, phase int, t *simTracker) bool {
	used, request := w.used(t), j.requests[phase]
	if request.Memory > 0 && t.offers.Memory > 0 && used.Memory+request.Memory > t.offers.Memory {
		return false
	}
	if request.Cores > 0 && t.offers.Cores > 0 && used.Cores+request.Cores > t.offers.Cores {
		return false
	}
	only, savedPhase, saved := t.Saved()
	return !saved || savedPhase == phase && only == request
}

// checkRoom checks a launch.
func (w *world) checkRoom(j *simJob, t *simTracker, phase int) {
	if !w.fitsNow(j, phase, t) {
		w.t.Fatalf("a task of phase %d of job %d is launched on tracker %d, which has no room for it", phase, j.number, t.index)
	}
}

// checkRooms compares the classes with the lists of the world.
func (w *world) checkRooms() {
	w.saved += len(w.a.saved)
	for _, t := range w.trackers {
		if used := w.used(t); t.Used() != used {
			w.t.Errorf("tracker %d uses %v, want %v", t.index, t.Used(), used)
		}
		if t.savedFor != nil && !slices.Contains(w.a.saved, &t.Tracker) {
			w.t.Errorf("tracker %d is saved, but not in the list", t.index)
		}
	}
	for _, j := range w.jobs {
		for phase := range w.a.phases {
			fits := 0
			for _, t := range w.trackers {
				for used := (Room{}); fits >= 0; {
					used.add(j.requests[phase], 1)
					if t.offers.Memory > 0 && j.requests[phase].Memory > 0 && used.Memory > t.offers.Memory ||
						t.offers.Cores > 0 && j.requests[phase].Cores > 0 && used.Cores > t.offers.Cores ||
						t.slotsOf(phase) < t.fit+1 {
						break
					}
					t.fit++
				}
				fits, t.fit = fits+t.fit, 0
				free := w.a.FreeTrackers(phase).Has(int(t.index)) && w.fitsNow(j, phase, t)
				if j.FreeFor(phase).Has(int(t.index)) != free {
					w.t.Errorf("tracker %d can take a task of phase %d of job %d: %v", t.index, phase, j.number, !free)
				}
			}
			if j.Fits(phase) != fits {
				w.t.Errorf("job %d fits %d slots of phase %d, want %d", j.number, j.Fits(phase), phase, fits)
			}
		}
	}
}

func (t *simTracker) slotsOf(phase int) int { return t.counted[phase] }

// TestRoomFits compares holds and times with adding up one task after the other.
func TestRoomFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, most int) Room {
			return Room{Memory: rapid.Int64Range(0, int64(most)).Draw(t, name), Cores: rapid.IntRange(0, most).Draw(t, name)}
		}
		offer, request, limit := draw("offer", 12), draw("request", 6), rapid.IntRange(0, 9).Draw(t, "limit")
		used, n := Room{}, 0
		for n < limit && offer.holds(used, request) {
			used.add(request, 1)
			n++
			if offer.Memory > 0 && used.Memory > offer.Memory || offer.Cores > 0 && used.Cores > offer.Cores {
				t.Fatalf("%d tasks with %v exceed %v", n, request, offer)
			}
		}
		if got := offer.times(request, limit); got != n {
			t.Fatalf("%v holds %v %d times, want %d", offer, request, got, n)
		}
		if lack := offer.lack(used, request); n < limit && !(lack > 0) || offer.holds(used, request) && lack > 0 {
			t.Fatalf("after %d tasks with %v, %v lacks %v", n, request, offer, lack)
		}
	})
}

// TestLargeRequestEnds fills all trackers with small maps without end. A job with a large request must
// still get a slot, as soon as the running maps of one tracker have ended after saveAfter.
func TestLargeRequestEnds(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: outer, now: time.Second}
		w.a = New(w, time.Minute)
		for range rapid.IntRange(1, 4).Draw(t, "trackers") {
			x := &simTracker{host: "h", rack: "/r", takesWork: true, offers: Room{Memory: rapid.Int64Range(4, 8).Draw(t, "offer")}}
			w.a.AddTracker(&x.Tracker, x, x.host, [2]int{8, 0})
			w.a.SetRack(&x.Tracker, x.rack)
			w.a.SetOffer(&x.Tracker, x.offers)
			w.trackers = append(w.trackers, x)
			w.setTakesWork(x)
		}
		small := w.addPlain(1, 1000, Room{Memory: 1})
		w.fill()
		large := w.addPlain(2, 1, Room{Memory: 4})
		w.a.SetPlan(Map, 1, []Target{{&large.Job, 1}, {&small.Job, 1000}}, nil)
		deadline := w.now + saveAfter + 10*time.Second
		for len(large.runs) == 0 {
			if w.now += time.Second; w.now > deadline {
				t.Fatalf("the large map waits for ever")
			}
			// Each tracker ends one map per second: there is never room for 4 at once, unless it is saved.
			for _, x := range w.trackers {
				for _, m := range sorted(small.runs) {
					if small.runs[m] == x {
						w.end(small, m)
						w.a.MarkChanged(&small.Job)
						break
					}
				}
			}
			w.fill()
		}
	})
}

func (w *world) addPlain(number, maps int, request Room) *simJob {
	j := &simJob{
		splits: make([]Split, maps), requests: [2]Room{request, {}},
		avoids: make(map[int][]*simTracker), runs: make(map[int]*simTracker), ready: make(map[*simTracker]int),
	}
	w.a.AddJob(&j.Job, number, j)
	w.a.SetRequests(&j.Job, j.requests)
	for m := range maps {
		w.a.AddPending(&j.Job, m)
	}
	w.jobs = append(w.jobs, j)
	w.locate(j)
	return j
}

func (w *world) fill() {
	w.a.AssignMaps()
	w.checkRooms()
}

// TestFullPoolSavesNothing tests that a tracker stays saved for a job only while the job's pool may take
// slots: else slots would be free for nothing.
func TestFullPoolSavesNothing(t *testing.T) {
	w := &world{t: t, now: time.Second}
	w.a = New(w, time.Minute)
	limit := func(most int) {
		w.a.SetPools([]pool.Pool{{Name: "p", Max: [2]int{most, pool.Unlimited}, MaxRunning: pool.Unlimited}})
	}
	limit(1)
	x := &simTracker{host: "h", rack: "/r", takesWork: true, offers: Room{Memory: 8}}
	w.a.AddTracker(&x.Tracker, x, x.host, [2]int{8, 0})
	w.a.SetRack(&x.Tracker, x.rack)
	w.a.SetOffer(&x.Tracker, x.offers)
	w.trackers = append(w.trackers, x)
	w.setTakesWork(x)
	small := w.addPlain(1, 4, Room{Memory: 2})
	w.fill()
	large := w.addPlain(2, 1, Room{Memory: 8})
	large.pool = "p"
	w.a.MarkChanged(&large.Job)
	w.a.SetPlan(Map, 1, []Target{{&large.Job, 1}, {&small.Job, 4}}, nil)
	w.fill()
	w.now += saveAfter
	w.fill()
	if large.SavedFor(Map) != &x.Tracker {
		t.Fatal("the tracker is not saved for the large map")
	}
	limit(0)
	late := w.addPlain(3, 1, Room{Memory: 2})
	w.end(small, sorted(small.runs)[0])
	w.a.MarkChanged(&small.Job)
	w.fill()
	if large.SavedFor(Map) != nil || len(late.runs)+len(small.runs) != 4 {
		t.Error("the tracker is saved for a job of a full pool, while a map of another job waits")
	}
}

// oneTracker returns a world with one tracker, of four map slots and four units of memory.
func oneTracker(t *testing.T) (*world, *simTracker) {
	w := &world{t: t, now: time.Second}
	w.a = New(w, time.Minute)
	x := &simTracker{host: "h", rack: "/r", takesWork: true, offers: Room{Memory: 4}}
	w.a.AddTracker(&x.Tracker, x, x.host, [2]int{4, 0})
	w.a.SetRack(&x.Tracker, x.rack)
	w.a.SetOffer(&x.Tracker, x.offers)
	w.trackers = append(w.trackers, x)
	w.setTakesWork(x)
	return w, x
}

// TestSaveUntil tests that no small map begins in the pieces of room that killed attempts leave one after
// the other, and that this ends with the large map or in time.
func TestSaveUntil(t *testing.T) {
	for _, taken := range []bool{true, false} {
		w, x := oneTracker(t)
		small := w.addPlain(1, 9, Room{Memory: 1})
		w.fill()
		large := w.addPlain(2, 1, Room{Memory: 2})
		w.a.SetPlan(Map, 1, []Target{{&large.Job, 1}, {&small.Job, 9}}, nil)
		w.a.SaveUntil(&large.Job, Map, &x.Tracker, w.now+time.Second)
		w.end(small, 0)
		w.a.MarkChanged(&small.Job)
		w.fill()
		if len(small.runs) != 3 {
			t.Fatalf("%d small maps run in the room for the large map, want 3", len(small.runs))
		}
		if taken {
			w.end(small, 1)
			w.a.MarkChanged(&small.Job)
			w.fill()
			if len(large.runs) != 1 || len(small.runs) != 2 {
				t.Fatalf("%d large and %d small maps run, want 1 and 2", len(large.runs), len(small.runs))
			}
			w.end(small, 2)
			w.a.MarkChanged(&small.Job)
		}
		want := 4
		if taken {
			want = 2
		} else {
			w.now += time.Second
		}
		w.fill()
		if _, _, saved := x.Saved(); saved || len(small.runs) != want {
			t.Errorf("the large map has begun: %v; the tracker is saved: %v, and %d small maps run, want %d", taken, saved, len(small.runs), want)
		}
	}
}

// TestSaveUntilForTwo tests that a tracker which is saved twice stays saved until two large maps have begun: the
// attempts that were killed for the second one may end after the first has begun.
func TestSaveUntilForTwo(t *testing.T) {
	w, x := oneTracker(t)
	small := w.addPlain(1, 9, Room{Memory: 1})
	w.fill()
	large := w.addPlain(2, 2, Room{Memory: 2})
	w.a.SetPlan(Map, 1, []Target{{&large.Job, 2}, {&small.Job, 9}}, nil)
	for range 2 {
		w.a.SaveUntil(&large.Job, Map, &x.Tracker, w.now+time.Second)
	}
	for ended := 1; ended <= 4; ended++ {
		w.end(small, ended-1)
		w.a.MarkChanged(&small.Job)
		w.fill()
		if len(small.runs) != 4-ended || len(large.runs) != ended/2 {
			t.Fatalf("%d small and %d large maps run after the end of %d", len(small.runs), len(large.runs), ended)
		}
	}
	if _, _, saved := x.Saved(); saved {
		t.Error("the tracker stays saved, though both large maps have begun")
	}
}

// TestSaveEndsWithoutTasks tests that a tracker which was saved for killed attempts is open again as soon as no
// map with such a request waits: the last one may have begun elsewhere.
func TestSaveEndsWithoutTasks(t *testing.T) {
	for _, another := range []bool{false, true} {
		w := &world{t: t, now: time.Second}
		w.a = New(w, time.Minute)
		add := func(offer int64) *simTracker {
			x := &simTracker{host: "h", rack: "/r", takesWork: true, offers: Room{Memory: offer}}
			w.a.AddTracker(&x.Tracker, x, x.host, [2]int{4, 0})
			w.a.SetRack(&x.Tracker, x.rack)
			w.a.SetOffer(&x.Tracker, x.offers)
			w.trackers = append(w.trackers, x)
			w.setTakesWork(x)
			return x
		}
		x := add(4)
		small := w.addPlain(1, 9, Room{Memory: 1})
		w.fill()
		large := w.addPlain(2, 1, Room{Memory: 2})
		if another {
			w.addPlain(3, 1, Room{Memory: 2})
		}
		w.a.SetPlan(Map, 1, []Target{{&large.Job, 1}, {&small.Job, 9}}, nil)
		w.a.SaveUntil(&large.Job, Map, &x.Tracker, w.now+time.Hour)
		w.fill()
		if _, _, saved := x.Saved(); !saved {
			t.Fatal("the tracker is not saved while the large map waits")
		}
		add(2)
		w.fill()
		w.end(small, 0)
		w.a.MarkChanged(&small.Job)
		w.fill()
		if _, _, saved := x.Saved(); len(large.runs) != 1 || saved != another {
			t.Errorf("%d large maps run on the other tracker; another waits: %v; the tracker is saved: %v", len(large.runs), another, saved)
		}
	}
}
