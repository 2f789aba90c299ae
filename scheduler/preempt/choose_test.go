package preempt_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/preempt"
	"github.com/quernmr/quern/wire"
)

// scene is the input of a choice.
type scene struct {
	pools    []preempt.Pool
	trackers []preempt.Tracker
	attempts []preempt.Attempt
}

func drawRoom(t *rapid.T, most int, cores bool) (r preempt.Room) {
	r.Memory = rapid.Int64Range(0, int64(most)).Draw(t, "memory")
	if cores {
		r.Cores = rapid.IntRange(0, most).Draw(t, "cores")
	}
	return r
}

// drawRequests draws requests, none as large as another one.
func drawRequests(t *rapid.T, cores bool) (all []preempt.Room) {
	for range rapid.IntRange(1, 3).Draw(t, "requests") {
		r := drawRoom(t, 5, cores)
		if !slices.ContainsFunc(all, func(x preempt.Room) bool {
			return x.Memory <= r.Memory && x.Cores <= r.Cores || r.Memory <= x.Memory && r.Cores <= x.Cores
		}) {
			all = append(all, r)
		}
	}
	return all
}

func drawScene(t *rapid.T, cores bool) (s scene) {
	for range rapid.IntRange(1, 5).Draw(t, "pools") {
		p := preempt.Pool{Running: rapid.IntRange(0, 12).Draw(t, "running"), Keep: rapid.IntRange(0, 8).Draw(t, "keep")}
		p.Least = rapid.IntRange(0, p.Keep).Draw(t, "least")
		if rapid.Bool().Draw(t, "starves") {
			p.Target = rapid.IntRange(0, 8).Draw(t, "target")
			p.Requests = drawRequests(t, cores)
		}
		p.Spared = rapid.IntRange(0, 5).Draw(t, "spared") == 0
		s.pools = append(s.pools, p)
	}
	for range rapid.IntRange(1, 4).Draw(t, "trackers") {
		x := preempt.Tracker{Free: rapid.IntRange(0, 2).Draw(t, "free"), Left: drawRoom(t, 3, true)}
		if !cores {
			x.Left.Cores = preempt.Unlimited.Cores
		}
		if rapid.IntRange(0, 7).Draw(t, "saved") == 0 {
			only := drawRoom(t, 5, cores)
			x.Saved = &only
		}
		s.trackers = append(s.trackers, x)
	}
	for i, p := range s.pools {
		for n := range rapid.IntRange(0, p.Running).Draw(t, "attempts") {
			s.attempts = append(s.attempts, preempt.Attempt{
				ID:   wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{N: i + 1}, Kind: wire.Map, N: n}},
				Pool: i, Tracker: rapid.IntRange(0, len(s.trackers)-1).Draw(t, "tracker"), Room: drawRoom(t, 3, cores),
				Age:  time.Duration(rapid.IntRange(0, 20).Draw(t, "age")) * time.Second,
				Task: time.Duration(rapid.IntRange(0, 20).Draw(t, "task")) * time.Second,
			})
		}
	}
	s.attempts = rapid.Permutation(s.attempts).Draw(t, "order")
	return s
}

// TestChooseLikeSimple compares Choose with a simple implementation, and with the rules P1 to P5.
func TestChooseLikeSimple(t *testing.T) {
	together := 0
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t, rapid.Bool().Draw(t, "cores"))
		got := preempt.Choose(s.pools, s.trackers, s.attempts)
		if want := newSimple(s).choose(); !reflect.DeepEqual(got.Sets, want) {
			t.Fatalf("%+v, not %+v", got.Sets, want)
		}
		s.check(t, got.Sets)
		for _, set := range got.Sets {
			if len(set.Attempts) > 1 {
				together++
			}
		}
	})
	if together == 0 {
		t.Error("no set has more than one attempt")
	}
}

// check checks the rules for the chosen sets.
func (s *scene) check(t *rapid.T, sets []preempt.Set) {
	missing, left, given := 0, make([]int, len(s.pools)), make([]int, len(s.pools))
	for i, p := range s.pools {
		left[i] = p.Running
		missing += max(0, p.Target-p.Running)
	}
	requests := make(map[int]preempt.Room) // by tracker
	if len(sets) > missing {
		t.Fatalf("%d sets for %d slots", len(sets), missing)
	}
	for _, set := range sets {
		if len(set.Attempts) == 0 || !slices.Contains(s.pools[set.Pool].Requests, set.Request) {
			t.Fatalf("the set %+v is for another pool, or empty", set)
		}
		if r, lost := requests[set.Tracker]; lost && r != set.Request {
			t.Fatalf("tracker %d loses sets for %+v and %+v", set.Tracker, r, set.Request)
		}
		requests[set.Tracker] = set.Request
		for _, i := range set.Attempts {
			a := s.attempts[i]
			left[a.Pool]--
			if i == set.Attempts[0] {
				given[a.Pool]++
			}
			switch p := s.pools[a.Pool]; {
			case left[a.Pool] < p.Least || given[a.Pool] > p.Running-p.Keep || len(set.Attempts) == 1 && p.Running-given[a.Pool] < p.Keep:
				t.Fatalf("pool %d falls to %d slots and gives %d: %+v", a.Pool, left[a.Pool], given[a.Pool], p)
			case p.Spared || p.Target > 0:
				t.Fatalf("pool %d loses an attempt: %+v", a.Pool, p)
			case nearsEnd(a):
				t.Fatalf("%+v nears its end", a)
			case a.Tracker != set.Tracker:
				t.Fatalf("%+v is not on tracker %d", a, set.Tracker)
			}
		}
	}
}

// simple chooses sets by looking at everything again each time. It remembers the set of a tracker until
// the tracker loses it, or a pool may not.
type simple struct {
	scene
	free  []int
	left  []preempt.Room
	spare []int // slots
	lose  []int // attempts
	gone  map[int]bool
}

func newSimple(s scene) *simple {
	s.trackers = slices.Clone(s.trackers)
	x := &simple{scene: s, gone: make(map[int]bool)}
	for _, t := range s.trackers {
		x.free, x.left = append(x.free, t.Free), append(x.left, t.Left)
	}
	for _, p := range s.pools {
		spare, lose := 0, 0
		if !p.Spared && p.Target == 0 && p.Running > p.Keep {
			spare, lose = p.Running-p.Keep, p.Running-p.Least
		}
		x.spare, x.lose = append(x.spare, spare), append(x.lose, lose)
	}
	return x
}

func (x *simple) choose() (sets []preempt.Set) {
	done := make([]bool, len(x.pools))
	for range 4 { // different requests
		var slots []int
		var requests []preempt.Room
		for i, p := range x.pools {
			if done[i] || p.Target <= p.Running || len(p.Requests) == 0 || requests != nil && !slices.Equal(p.Requests, requests) {
				continue
			}
			done[i], requests = true, p.Requests
			for n := p.Running; n < p.Target; n++ {
				slots = append(slots, i)
			}
		}
		sets = append(sets, x.serve(requests, slots)...)
	}
	return sets
}

func (x *simple) serve(requests []preempt.Room, slots []int) (sets []preempt.Set) {
	for i := range x.trackers {
		slots = x.begin(i, requests, slots)
	}
	known := make(map[int]preempt.Set)
	for i := range x.trackers {
		x.look(known, i, requests)
	}
	for len(slots) > 0 && len(known) > 0 {
		best := -1
		for i := range x.trackers {
			if s, ok := known[i]; ok && (best < 0 || x.before(s, known[best])) {
				best = i
			}
		}
		if s := known[best]; x.allowed(s.Attempts) {
			s.Pool, slots = slots[0], slots[1:]
			sets = append(sets, s)
			gives := make(map[int]bool)
			for _, a := range s.Attempts {
				x.gone[a], gives[x.attempts[a].Pool] = true, true
				x.lose[x.attempts[a].Pool]--
				x.free[best]++
				x.left[best] = x.left[best].Plus(x.attempts[a].Room)
			}
			for p := range gives {
				x.spare[p]--
			}
			x.take(best, s.Request)
			x.trackers[best].Saved = &s.Request
			slots = x.begin(best, requests, slots)
		}
		x.look(known, best, requests)
	}
	return sets
}

func (x *simple) take(i int, r preempt.Room) {
	x.free[i]--
	x.left[i].Memory -= r.Memory
	x.left[i].Cores -= r.Cores
}

func (x *simple) fits(i, free int, left, r preempt.Room) bool {
	return free > 0 && (r.Memory == 0 || left.Memory >= r.Memory) && (r.Cores == 0 || left.Cores >= r.Cores) &&
		(x.trackers[i].Saved == nil || *x.trackers[i].Saved == r)
}

// begin begins tasks in free slots, for the last of the missing slots.
func (x *simple) begin(i int, requests []preempt.Room, slots []int) []int {
	for {
		best, most := preempt.Room{}, 0
		for _, r := range requests {
			free, left, n := x.free[i], x.left[i], 0
			for n < len(slots) && x.fits(i, free, left, r) {
				free, left, n = free-1, left.Plus(preempt.Room{Memory: -r.Memory, Cores: -r.Cores}), n+1
			}
			if n > most {
				best, most = r, n
			}
		}
		if most == 0 {
			return slots
		}
		for range most {
			x.take(i, best)
			slots = slots[:len(slots)-1]
		}
	}
}

func (x *simple) allowed(set []int) bool {
	lost := make(map[int]int)
	for _, a := range set {
		lost[x.attempts[a].Pool]++
	}
	for p, n := range lost {
		if x.spare[p] == 0 || n > x.lose[p] {
			return false
		}
	}
	return true
}

func (x *simple) work(s preempt.Set) (lost time.Duration) {
	for _, a := range s.Attempts {
		lost += x.attempts[a].Age
	}
	return lost
}

// before reports whether a set goes before another one, which is on another tracker.
func (x *simple) before(s, other preempt.Set) bool {
	if a, b := x.work(s), x.work(other); a != b {
		return a < b
	}
	if a, b := len(s.Attempts), len(other.Attempts); a != b {
		return a < b
	}
	return x.attempts[s.Attempts[0]].ID.Compare(x.attempts[other.Attempts[0]].ID) < 0
}

// look finds the set that a tracker would lose.
func (x *simple) look(known map[int]preempt.Set, i int, requests []preempt.Room) {
	delete(known, i)
	for _, r := range requests {
		set := x.setOf(i, r)
		if set == nil {
			continue
		}
		s := preempt.Set{Tracker: i, Request: r, Attempts: set}
		if best, ok := known[i]; !ok || x.before(s, best) {
			known[i] = s
		}
	}
}

func (x *simple) setOf(i int, r preempt.Room) []int {
	var list []int
	for a := range x.attempts {
		if x.attempts[a].Tracker == i && !x.gone[a] && !nearsEnd(x.attempts[a]) {
			list = append(list, a)
		}
	}
	younger := func(a, b int) int {
		p, q := x.attempts[a], x.attempts[b]
		if p.Age != q.Age {
			return int(p.Age - q.Age)
		}
		return p.ID.Compare(q.ID)
	}
	slices.SortFunc(list, younger)
	set := x.enough(i, r, list)
	if set == nil {
		part := func(a int) (sum float64) {
			if lack := r.Memory - x.left[i].Memory; lack > 0 {
				sum += min(1, float64(x.attempts[a].Room.Memory)/float64(lack))
			}
			if lack := r.Cores - x.left[i].Cores; lack > 0 {
				sum += min(1, float64(x.attempts[a].Room.Cores)/float64(lack))
			}
			return sum
		}
		var largest []int // ties: the youngest
		for rest := list; len(rest) > 0; {
			best := 0
			for k := range rest {
				if part(rest[k]) > part(rest[best]) {
					best = k
				}
			}
			largest = append(largest, rest[best])
			rest = slices.Delete(slices.Clone(rest), best, best+1)
		}
		set = x.enough(i, r, largest)
		slices.SortFunc(set, younger)
	}
	for k := len(set) - 1; k >= 0; k-- { // the oldest first
		if without := slices.Delete(slices.Clone(set), k, k+1); len(without) > 0 && x.frees(i, r, without) {
			set = without
		}
	}
	return set
}

// enough returns the first attempts of a list that may go and make room for a request.
func (x *simple) enough(i int, r preempt.Room, list []int) (set []int) {
	for _, a := range list {
		if more := append(slices.Clone(set), a); x.allowed(more) {
			if set = more; x.frees(i, r, set) {
				return set
			}
		}
	}
	return nil
}

// frees reports whether a slot has room for a request without these attempts.
func (x *simple) frees(i int, r preempt.Room, set []int) bool {
	free, left := x.free[i], x.left[i]
	for _, a := range set {
		free, left = free+1, left.Plus(x.attempts[a].Room)
	}
	return x.fits(i, free, left, r)
}

// TestChooseFindsSets compares a choice for one slot with all sets of attempts: it finds one if there is one,
// as long as only memory lacks, and none of its attempts is needless.
func TestChooseFindsSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cores := rapid.Bool().Draw(t, "cores")
		s := drawScene(t, cores)
		s.attempts = s.attempts[:min(len(s.attempts), 8)]
		for i := range s.pools {
			s.pools[i].Target = 0
		}
		s.pools = append(s.pools, preempt.Pool{Target: 1, Requests: []preempt.Room{drawRoom(t, 6, cores)}})
		request, x := s.pools[len(s.pools)-1].Requests[0], newSimple(s)
		exists := false
		for i := range s.trackers {
			for bits := range 1 << len(s.attempts) {
				var set []int
				for a := range s.attempts {
					if bits>>a&1 == 1 {
						set = append(set, a)
					}
				}
				on := func(a int) bool { return s.attempts[a].Tracker != i || nearsEnd(s.attempts[a]) }
				exists = exists || !slices.ContainsFunc(set, on) && x.allowed(set) && x.frees(i, request, set)
			}
		}
		for i := range s.trackers {
			exists = exists && !x.frees(i, request, nil)
		}
		got := preempt.Choose(s.pools, s.trackers, s.attempts).Sets
		if len(got) > 0 && !exists || len(got) == 0 && exists && !cores {
			t.Fatalf("sets %+v; there is one: %v", got, exists)
		}
		for _, set := range got {
			for k := range set.Attempts {
				if without := slices.Delete(slices.Clone(set.Attempts), k, k+1); len(without) > 0 && x.frees(set.Tracker, request, without) {
					t.Fatalf("%+v could do without %+v", set, s.attempts[set.Attempts[k]])
				}
			}
		}
	})
}

// TestTrackerServesOneRequest tests that a choice kills for one request on a tracker: it is kept free for only one. The
// other pool waits for the next choice.
func TestTrackerServesOneRequest(t *testing.T) {
	s := scene{trackers: []preempt.Tracker{{}}, pools: []preempt.Pool{
		{Running: 6}, {Target: 1, Requests: []preempt.Room{{Memory: 2}}}, {Target: 2, Requests: []preempt.Room{{Memory: 3}}},
	}}
	for n := range 6 {
		s.attempts = append(s.attempts, preempt.Attempt{ID: wire.AttemptID{Task: wire.TaskID{N: n}}, Room: preempt.Room{Memory: 1}})
	}
	got := preempt.Choose(s.pools, s.trackers, s.attempts)
	if len(got.Sets) != 1 || got.Sets[0].Pool != 1 || !slices.Equal(got.Served, []int{1}) {
		t.Errorf("sets %+v for pools %v, want one for pool 1", got.Sets, got.Served)
	}
	s.pools[1].Target = 0
	if got = preempt.Choose(s.pools, s.trackers, s.attempts); len(got.Sets) != 2 {
		t.Errorf("sets %+v for one request, want 2", got.Sets)
	}
}

// TestChooseIsBounded counts the entries that a choice for many pools visits, on a large cluster.
func TestChooseIsBounded(t *testing.T) {
	const trackers, slots = 1000, 10
	var s scene
	for i := range 20 {
		p := preempt.Pool{Running: trackers * slots / 20, Keep: trackers * slots / 40}
		if i%2 == 0 {
			p = preempt.Pool{Target: 200, Requests: []preempt.Room{{Memory: int64(2 + i%4)}}}
		}
		s.pools = append(s.pools, p)
	}
	for i := range trackers {
		s.trackers = append(s.trackers, preempt.Tracker{Left: preempt.Room{Memory: 0, Cores: 10}})
		for k := range slots {
			n := i*slots + k
			s.attempts = append(s.attempts, preempt.Attempt{
				ID:   wire.AttemptID{Task: wire.TaskID{Kind: wire.Map, N: n}},
				Pool: 2*(n%10) + 1, Tracker: i, Room: preempt.Room{Memory: 1}, Age: time.Duration(n*7919%1000) * time.Second,
			})
		}
	}
	got := preempt.Choose(s.pools, s.trackers, s.attempts)
	killed := 0
	for _, set := range got.Sets {
		killed += len(set.Attempts)
	}
	if len(got.Sets) < 500 || killed < 1000 || len(got.Served) != 10 {
		t.Fatalf("%d sets with %d attempts for %d pools", len(got.Sets), killed, len(got.Served))
	}
	if most := 4 * trackers * slots; got.Visited > most {
		t.Errorf("%d entries visited for %d attempts on %d trackers, at most %d", got.Visited, trackers*slots, trackers, most)
	}
}
