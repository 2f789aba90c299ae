package preempt

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/scheduler/heap"
	"github.com/quernmr/quern/wire"
)

// Room is memory in bytes, and cores: what an attempt uses, what a task requests, or what a tracker
// has left.
type Room struct {
	Memory int64
	Cores  int
}

// Unlimited is the room that a tracker without limits has left.
var Unlimited = Room{Memory: math.MaxInt64 / 2, Cores: math.MaxInt / 2}

// Plus returns the sum of two rooms.
func (r Room) Plus(x Room) Room { return Room{r.Memory + x.Memory, r.Cores + x.Cores} }

// holds reports whether a room is enough for a request.
func (r Room) holds(request Room) bool {
	return (request.Memory == 0 || request.Memory <= r.Memory) && (request.Cores == 0 || request.Cores <= r.Cores)
}

// times returns how often a room holds a request, at most limit.
func (r Room) times(request Room, limit int) int {
	limit = max(limit, 0)
	if request.Memory > 0 {
		limit = int(min(int64(limit), max(r.Memory, 0)/request.Memory))
	}
	if request.Cores > 0 {
		limit = min(limit, max(r.Cores, 0)/request.Cores)
	}
	return limit
}

// Pool is a pool when attempts are chosen.
type Pool struct {
	Running  int    // slots in use, without those of killed attempts
	Keep     int    // slots that others may not take: it gives the slots above them
	Least    int    // slots that it keeps, even if a slot for another pool costs it several attempts
	Target   int    // slots that it should have; 0: it does not starve
	Spared   bool   // nothing is taken from it
	Requests []Room // of its waiting tasks, if it starves: those that are not as large as another one; empty: no task waits
}

// Tracker is a task tracker when attempts are chosen. Slots and room that attempts use which are being
// killed count as free.
type Tracker struct {
	Free  int
	Left  Room
	Saved *Room // only tasks with this request may begin; nil: all
}

// Attempt is a running attempt that may be killed.
type Attempt struct {
	ID      wire.AttemptID
	Pool    int           // index of its pool
	Tracker int           // index of its tracker
	Room    Room          // what it uses beside its slot
	Age     time.Duration // since its launch
	Task    time.Duration // estimated time of the task; 0: unknown
}

// Set is attempts on one tracker that together leave a slot with the room for a task.
type Set struct {
	Pool     int // index of the pool for which they are killed
	Tracker  int
	Request  Room  // what the task requests
	Attempts []int // indexes, the youngest first
}

// Choice is the result of [Choose].
type Choice struct {
	Sets    []Set
	Served  []int // indexes of the pools for which attempts are killed, and of those with the same requests
	Visited int   // entries visited: trackers, and attempts of sets
}

// maxDemands bounds how many different lists of requests a choice looks at. The pools with other ones
// wait for the next choice.
const maxDemands = 4

// Choose returns the sets of attempts to kill, in order. It visits each tracker, and its attempts once
// for each request, and again the attempts of a tracker that loses some.
func Choose(pools []Pool, trackers []Tracker, attempts []Attempt) *Choice {
	c := newChooser(pools, trackers, attempts)
	for _, d := range demandsOf(pools) {
		chosen := len(c.Sets)
		if c.serve(d); len(c.Sets) > chosen {
			c.Served = append(c.Served, d.pools...)
		}
	}
	return &c.Choice
}

// demand is the slots that pools with the same requests miss.
type demand struct {
	requests []Room
	pools    []int
	missing  []int // the pool of each slot, in order
}

// demandsOf returns the demands of the starving pools, in the order of their first pools.
func demandsOf(pools []Pool) (all []demand) {
	for i := range pools {
		p := &pools[i]
		if p.Target <= p.Running || len(p.Requests) == 0 {
			continue
		}
		k := slices.IndexFunc(all, func(d demand) bool { return slices.Equal(d.requests, p.Requests) })
		if k < 0 {
			if k = len(all); k == maxDemands {
				continue
			}
			all = append(all, demand{requests: p.Requests})
		}
		d := &all[k]
		d.pools = append(d.pools, i)
		for range p.Target - p.Running {
			d.missing = append(d.missing, i)
		}
	}
	return all
}

// chooser is the state of a choice. It changes its trackers as if attempts were killed and tasks begun.
type chooser struct {
	Choice
	trackers []Tracker
	attempts []Attempt
	spare    []int   // by pool: slots that it may give
	lose     []int   // by pool: attempts that it may lose for them
	inSet    []int   // by pool: attempts of the set that is made
	on       [][]int // by tracker: attempts that may be killed, the youngest first
}

func newChooser(pools []Pool, trackers []Tracker, attempts []Attempt) *chooser {
	c := &chooser{
		trackers: slices.Clone(trackers), attempts: attempts,
		spare: make([]int, len(pools)), lose: make([]int, len(pools)), inSet: make([]int, len(pools)), on: make([][]int, len(trackers)),
	}
	for i, p := range pools {
		if !p.Spared && p.Target == 0 {
			c.spare[i], c.lose[i] = max(0, p.Running-p.Keep), max(0, p.Running-p.Least)
		}
	}
	for i := range attempts {
		if a := &attempts[i]; c.spare[a.Pool] > 0 && !a.NearsEnd() {
			c.on[a.Tracker] = append(c.on[a.Tracker], i)
		}
	}
	for _, list := range c.on {
		slices.SortFunc(list, c.younger)
	}
	return c
}

// younger orders attempts: the youngest first.
func (c *chooser) younger(x, y int) int {
	a, b := &c.attempts[x], &c.attempts[y]
	return cmp.Or(cmp.Compare(a.Age, b.Age), a.ID.Compare(b.ID))
}

// candidate is the set that a tracker would lose next.
type candidate struct {
	tracker int
	request Room
	set     []int
	lost    time.Duration // sum of the ages
}

// compare orders candidates: the one that loses the least work first, then the one with the fewest
// attempts.
func (c *chooser) compare(x, y *candidate) int {
	return cmp.Or(cmp.Compare(x.lost, y.lost), cmp.Compare(len(x.set), len(y.set)), c.attempts[x.set[0]].ID.Compare(c.attempts[y.set[0]].ID))
}

// serve chooses sets for a demand. Free slots are for the last pools. The set of a tracker is computed again
// when the tracker has lost some, or a pool can no longer lose all of it.
func (c *chooser) serve(d demand) {
	missing := d.missing
	for i := range c.trackers {
		c.Visited++
		if missing = missing[:len(missing)-c.use(i, d.requests, len(missing))]; len(missing) == 0 {
			return
		}
	}
	var all []candidate
	for i := range c.trackers {
		if x, ok := c.cheapest(i, d.requests); ok {
			all = append(all, x)
		}
	}
	next := heap.New(all, func(a, b candidate) bool { return c.compare(&a, &b) < 0 })
	for len(missing) > 0 && len(next.Items) > 0 {
		x := next.Items[0]
		if c.maySpare(x.set) {
			c.kill(missing[0], &x)
			missing = missing[1:]
			missing = missing[:len(missing)-c.use(x.tracker, d.requests, len(missing))]
		}
		if again, ok := c.cheapest(x.tracker, d.requests); ok {
			next.Items[0] = again
			next.Sift(0)
		} else {
			next.Pop()
		}
	}
}

// open reports whether tasks with a request may begin on a tracker.
func (t *Tracker) open(request Room) bool { return t.Saved == nil || *t.Saved == request }

// use begins tasks with the requests in the free slots of a tracker: first with that for which there are
// the most slots. It returns their number, at most limit.
func (c *chooser) use(i int, requests []Room, limit int) (begun int) {
	t := &c.trackers[i]
	for {
		most, best := 0, Room{}
		for _, r := range requests {
			if n := t.Left.times(r, min(t.Free, limit-begun)); t.open(r) && n > most {
				most, best = n, r
			}
		}
		if most == 0 {
			return begun
		}
		begun += most
		for range most {
			t.begin(best)
		}
	}
}

func (t *Tracker) begin(request Room) {
	t.Free--
	t.Left = t.Left.Plus(Room{-request.Memory, -request.Cores})
}

// maySpare reports whether the pools of attempts may still lose them.
func (c *chooser) maySpare(set []int) bool {
	for n, a := range set {
		if !c.joinSet(a) {
			c.leaveSet(set[:n])
			return false
		}
	}
	c.leaveSet(set)
	return true
}

// joinSet adds an attempt to the set that is made, if its pool may lose it.
func (c *chooser) joinSet(attempt int) bool {
	p := c.attempts[attempt].Pool
	if c.spare[p] == 0 || c.inSet[p] == c.lose[p] {
		return false
	}
	c.inSet[p]++
	return true
}

func (c *chooser) leaveSet(set []int) {
	for _, a := range set {
		c.inSet[c.attempts[a].Pool]--
	}
}

// kill kills a set for a task of a pool, which begins. The tracker is for tasks with that request from now on:
// its attempts end one after the other, and a task with another request would begin in the room.
func (c *chooser) kill(forPool int, x *candidate) {
	t := &c.trackers[x.tracker]
	for n, a := range x.set {
		p := c.attempts[a].Pool
		if c.lose[p]--; !slices.ContainsFunc(x.set[:n], func(other int) bool { return c.attempts[other].Pool == p }) {
			c.spare[p]--
		}
		t.Free, t.Left = t.Free+1, t.Left.Plus(c.attempts[a].Room)
	}
	t.begin(x.request)
	t.Saved = &x.request
	c.on[x.tracker] = slices.DeleteFunc(c.on[x.tracker], func(a int) bool { return slices.Contains(x.set, a) })
	c.Sets = append(c.Sets, Set{Pool: forPool, Tracker: x.tracker, Request: x.request, Attempts: x.set})
}

// cheapest returns the set on a tracker that loses the least work of those for each of the requests.
func (c *chooser) cheapest(i int, requests []Room) (best candidate, ok bool) {
	for _, r := range requests {
		if !c.trackers[i].open(r) {
			continue
		}
		set := c.setFor(i, r)
		if set == nil {
			continue
		}
		x := candidate{tracker: i, request: r, set: set}
		for _, a := range set {
			x.lost += c.attempts[a].Age
		}
		if !ok || c.compare(&x, &best) < 0 {
			best, ok = x, true
		}
	}
	return best, ok
}

// setFor returns a set of attempts on a tracker for a request, or nil. It takes the youngest ones. If that
// is not enough, since pools may lose only some of them, it takes the largest ones.
func (c *chooser) setFor(i int, request Room) []int {
	list := c.on[i]
	set := c.fill(i, request, list)
	if set == nil && len(list) > 1 {
		lack := request.Plus(Room{-c.trackers[i].Left.Memory, -c.trackers[i].Left.Cores})
		largest := slices.Clone(list)
		slices.SortStableFunc(largest, func(x, y int) int {
			return cmp.Compare(c.attempts[y].Room.part(lack), c.attempts[x].Room.part(lack))
		})
		set = c.fill(i, request, largest)
		slices.SortFunc(set, c.younger)
	}
	return c.prune(i, request, set)
}

// part returns which part of a lack a room fills, summed over both resources.
func (r Room) part(lack Room) (sum float64) {
	if lack.Memory > 0 {
		sum += min(float64(r.Memory)/float64(lack.Memory), 1)
	}
	if lack.Cores > 0 {
		sum += min(float64(r.Cores)/float64(lack.Cores), 1)
	}
	return sum
}

// fill takes attempts of a list in order, as far as their pools may lose them, until a tracker has a slot
// with room for a request. It returns nil if they are not enough.
func (c *chooser) fill(i int, request Room, list []int) (set []int) {
	t := c.trackers[i]
	for _, a := range list {
		if t.Free > 0 && t.Left.holds(request) {
			break
		}
		c.Visited++
		if c.joinSet(a) {
			set = append(set, a)
			t.Free, t.Left = t.Free+1, t.Left.Plus(c.attempts[a].Room)
		}
	}
	c.leaveSet(set)
	if t.Free <= 0 || !t.Left.holds(request) {
		return nil
	}
	return set
}

// prune removes the attempts of a set that it can do without, the oldest first.
func (c *chooser) prune(i int, request Room, set []int) []int {
	t := c.trackers[i]
	for _, a := range set {
		t.Free, t.Left = t.Free+1, t.Left.Plus(c.attempts[a].Room)
	}
	for k := len(set) - 1; k >= 0 && len(set) > 1; k-- {
		x := c.attempts[set[k]].Room
		if left := t.Left.Plus(Room{-x.Memory, -x.Cores}); t.Free > 1 && left.holds(request) {
			t.Free, t.Left = t.Free-1, left
			set = slices.Delete(set, k, k+1)
		}
	}
	return set
}
