// Package quota counts the jobs that have not ended, by user and pool. It decides whether a
// submission exceeds a limit, and which jobs may begin. The others wait, in order.
//
//	              Reserve            Release, Add          Wait            Next         Remove
//	submission ────────────> proposed ──────────> accepted ─────> waiting ──────> begun ──────> ended
//
// A job counts for Limits.Jobs from its reservation to its end, and for Limits.Begun from its
// beginning to its end, except while it is suspended.
//
// Invariants
//
//	Q1  Reserve accepts no submission that exceeds a limit.
//	Q2  Next considers the waiting jobs of users and pools that have room. It returns the first
//	    of them, by priority and then by number. So a job that waits for the limit of its user or
//	    pool does not hold back others. [Group] has limits of certain users and pools.
//	Q3  Begin and a resumed job may exceed a limit: they run already. Next then returns no job
//	    until enough have ended.
//
// The package has no clock, no I/O and does not depend on map order. Only the leader uses it: the
// counts follow from the facts, so a new leader has the same.
package quota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Bound limits a number of jobs; 0 means no limit.
type Bound struct {
	All  int
	User int // of each user
	Pool int // in each pool
}

// Limits are the limits on jobs.
type Limits struct {
	Jobs  Bound // that have not ended
	Begun Bound // that have begun and have not ended
}

// Job describes a job. Jobs of a submission have the same User and Pool.
type Job struct {
	User, Pool string
	Priority   wire.Priority
	Suspended  bool
}

// Group is a limit of begun jobs that concerns certain users or pools, such as a pool and the pools
// in it. Groups of equal names are one.
type Group struct {
	Of  string // such as "user ann"
	Max int
}

// Exceeded is a limit that a request exceeds.
type Exceeded struct {
	Limit string // its name, for example "user-jobs"
	Of    string // what the limit is for, such as "user ann"; empty: the cluster
	Max   int
	Have  int // unfinished jobs
	More  int // requested jobs
}

func (e *Exceeded) Error() string {
	return fmt.Sprintf("unfinished jobs of %s: %d, with the submission %d, at most %d (%s)", cmp.Or(e.Of, "the cluster"), e.Have, e.Have+e.More, e.Max, e.Limit)
}

// Quota has the counts and the waiting jobs. Make one with New.
type Quota struct {
	limits   Limits
	total    counts // unfinished and reserved jobs
	begun    counts
	jobs     map[int]*entry
	reserved map[string]reservation // by submission key
	moves    map[string]reservation // jobs that move to pools, by key
	lines    map[owner][]*entry     // waiting jobs, first one first; no empty lines
	groupsOf func(user, pool string) []Group
	groups   map[owner][]Group // from groupsOf
	inGroup  map[string]int    // begun jobs of groups
}

type owner struct{ user, pool string }

type counts struct {
	all   int
	users map[string]int
	pools map[string]int
}

type reservation struct {
	owner
	jobs int
}

type entry struct {
	Job
	n       int
	begun   bool
	waiting bool
	groups  []Group // of its owner
}

// New makes an empty Quota.
func New(limits Limits) *Quota {
	return &Quota{
		limits: limits, total: newCounts(), begun: newCounts(),
		jobs: make(map[int]*entry), reserved: make(map[string]reservation), moves: make(map[string]reservation), lines: make(map[owner][]*entry),
		groupsOf: func(string, string) []Group { return nil }, groups: make(map[owner][]Group), inGroup: make(map[string]int),
	}
}

// SetGroups replaces the groups of all users and pools.
func (q *Quota) SetGroups(of func(user, pool string) []Group) {
	q.groupsOf = of
	clear(q.inGroup)
	clear(q.groups)
	for _, e := range q.jobs { // any order: it only counts
		if e.groups = q.groupsFor(e.owner()); e.begun && !e.Suspended {
			q.countGroups(e, 1)
		}
	}
}

// maxKnown limits the memory for groups.
const maxKnown = 10_000

func (q *Quota) groupsFor(o owner) []Group {
	groups, ok := q.groups[o]
	if !ok {
		if len(q.groups) >= maxKnown {
			clear(q.groups)
		}
		groups = q.groupsOf(o.user, o.pool)
		q.groups[o] = groups
	}
	return groups
}

func (q *Quota) countGroups(e *entry, by int) {
	for _, g := range e.groups {
		if q.inGroup[g.Of] += by; q.inGroup[g.Of] == 0 {
			delete(q.inGroup, g.Of)
		}
	}
}

// exceeds returns the limit that the beginning of a job would exceed, or nil.
func (q *Quota) exceeds(e *entry) *Exceeded {
	if x := q.begun.exceeded(q.limits.Begun, e.owner(), 1); x != nil {
		return x
	}
	for _, g := range e.groups {
		if have := q.inGroup[g.Of]; have >= g.Max {
			return &Exceeded{Limit: inPools, Of: g.Of, Max: g.Max, Have: have, More: 1}
		}
	}
	return nil
}

// inPools is the name of the limits of groups.
const inPools = "pools file"

func newCounts() counts { return counts{users: make(map[string]int), pools: make(map[string]int)} }

func (c *counts) add(o owner, by int) {
	c.all += by
	addTo(c.users, o.user, by)
	c.addToPool(o.pool, by)
}

func (c *counts) addToPool(pool string, by int) { addTo(c.pools, pool, by) }

func addTo(counts map[string]int, name string, by int) {
	if counts[name] += by; counts[name] == 0 {
		delete(counts, name)
	}
}

// exceeded returns the limit that more jobs would exceed, or nil.
func (c *counts) exceeded(b Bound, o owner, more int) *Exceeded {
	for _, x := range []Exceeded{
		{"jobs", "", b.All, c.all, more},
		{"user-jobs", "user " + o.user, b.User, c.users[o.user], more},
		{"pool-jobs", "pool " + o.pool, b.Pool, c.pools[o.pool], more},
	} {
		if x.Max > 0 && x.Have+more > x.Max {
			return &x
		}
	}
	return nil
}

func (j *Job) owner() owner { return owner{j.User, j.Pool} }

// Reserve counts the jobs of a submission that is proposed, or returns an *Exceeded. A second
// reservation with the same key changes nothing.
func (q *Quota) Reserve(key string, j Job, jobs int) error {
	if _, ok := q.reserved[key]; ok {
		return nil
	}
	if e := q.total.exceeded(q.limits.Jobs, j.owner(), jobs); e != nil {
		return e
	}
	q.reserved[key] = reservation{j.owner(), jobs}
	q.total.add(j.owner(), jobs)
	return nil
}

// Release ends a reservation: the submission is in the log, or will never be.
func (q *Quota) Release(key string) {
	if r, ok := q.reserved[key]; ok {
		delete(q.reserved, key)
		q.total.add(r.owner, -r.jobs)
	}
}

// ReserveMove counts jobs in a pool, to which they are proposed to move, until ReleaseMove. It returns an
// *Exceeded if they exceed the pool's limit. It replaces an earlier reservation with the same key.
func (q *Quota) ReserveMove(key, pool string, jobs int) error {
	q.ReleaseMove(key)
	if e := q.total.exceeded(Bound{Pool: q.limits.Jobs.Pool}, owner{pool: pool}, jobs); e != nil {
		return e
	}
	q.moves[key] = reservation{owner{pool: pool}, jobs}
	q.total.addToPool(pool, jobs)
	return nil
}

// ReleaseMove ends a reservation: the move is in the log, or will never be.
func (q *Quota) ReleaseMove(key string) {
	if r, ok := q.moves[key]; ok {
		delete(q.moves, key)
		q.total.addToPool(r.owner.pool, -r.jobs)
	}
}

// Add adds a job of the log.
func (q *Quota) Add(n int, j Job) {
	q.jobs[n] = &entry{Job: j, n: n, groups: q.groupsFor(j.owner())}
	q.total.add(j.owner(), 1)
}

// Remove removes a job that has ended.
func (q *Quota) Remove(n int) {
	e := q.jobs[n]
	if e == nil {
		return
	}
	q.leaveLine(e)
	q.count(e, -1)
	q.total.add(e.owner(), -1)
	delete(q.jobs, n)
}

// Change changes a job's pool, priority and suspension.
func (q *Quota) Change(n int, j Job) {
	e := q.jobs[n]
	if e == nil || e.Job == j {
		return
	}
	waiting := e.waiting
	q.leaveLine(e)
	q.count(e, -1)
	q.total.add(e.owner(), -1)
	e.Job, e.groups = j, q.groupsFor(j.owner())
	q.total.add(e.owner(), 1)
	q.count(e, 1)
	if waiting {
		q.Wait(n)
	}
}

// count adds to the counts of begun jobs, if the job is one.
func (q *Quota) count(e *entry, by int) {
	if e.begun && !e.Suspended {
		q.begun.add(e.owner(), by)
		q.countGroups(e, by)
	}
}

// Begin counts a job that runs already, whatever the limits are.
func (q *Quota) Begin(n int) {
	if e := q.jobs[n]; e != nil && !e.begun {
		q.leaveLine(e)
		e.begun = true
		q.count(e, 1)
	}
}

// Begun reports whether a job has begun.
func (q *Quota) Begun(n int) bool {
	e := q.jobs[n]
	return e != nil && e.begun
}

// Wait puts a job in line, unless it has begun or is suspended.
func (q *Quota) Wait(n int) {
	e := q.jobs[n]
	if e == nil || e.begun || e.waiting || e.Suspended {
		return
	}
	e.waiting = true
	line := q.lines[e.owner()]
	i, _ := slices.BinarySearchFunc(line, e, precedence)
	q.lines[e.owner()] = slices.Insert(line, i, e)
}

// Stop takes a job from the line that will never begin.
func (q *Quota) Stop(n int) {
	if e := q.jobs[n]; e != nil {
		q.leaveLine(e)
	}
}

func (q *Quota) leaveLine(e *entry) {
	if !e.waiting {
		return
	}
	e.waiting = false
	line := q.lines[e.owner()]
	i, _ := slices.BinarySearchFunc(line, e, precedence)
	if line = slices.Delete(line, i, i+1); len(line) == 0 {
		delete(q.lines, e.owner())
	} else {
		q.lines[e.owner()] = line
	}
}

func precedence(a, b *entry) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.n, b.n))
}

// Next begins the first waiting job that may begin, and returns it; ok is false if none may. It
// takes time for each user and pool with waiting jobs, not for each job.
func (q *Quota) Next() (n int, ok bool) {
	if b := q.limits.Begun; len(q.lines) == 0 || b.All > 0 && q.begun.all >= b.All {
		return 0, false
	}
	var first *entry
	for _, line := range q.lines { // any order: the minimum is unique
		if q.exceeds(line[0]) == nil && (first == nil || precedence(line[0], first) < 0) {
			first = line[0]
		}
	}
	if first == nil {
		return 0, false
	}
	q.Begin(first.n)
	return first.n, true
}

// Use is how much of a limit is used.
type Use struct {
	Limit string // its name, for example "user-jobs"
	Of    string // the user or pool that uses most, such as "user ann"; empty: the cluster
	Have  int
	Max   int
}

// Uses lists the limits and their uses.
func (q *Quota) Uses() (all []Use) {
	for _, x := range []struct {
		names [3]string
		*counts
		Bound
	}{
		{[3]string{"jobs", "user-jobs", "pool-jobs"}, &q.total, q.limits.Jobs},
		{[3]string{"running", "user-running", "pool-running"}, &q.begun, q.limits.Begun},
	} {
		user, ofUser := most("user ", x.users)
		pool, inPool := most("pool ", x.pools)
		for _, u := range []Use{{x.names[0], "", x.all, x.All}, {x.names[1], user, ofUser, x.User}, {x.names[2], pool, inPool, x.Pool}} {
			if u.Max > 0 {
				all = append(all, u)
			}
		}
	}
	return all
}

// most returns the name with the highest count, after a prefix; empty: there is none.
func most(prefix string, counts map[string]int) (of string, n int) {
	first := ""
	for name, have := range counts { // any order: the maximum by name is unique
		if of == "" || have > n || have == n && name < first {
			of, first, n = prefix+name, name, have
		}
	}
	return of, n
}

// Why says why a waiting job does not begin, or returns the empty string.
func (q *Quota) Why(n int) string {
	e := q.jobs[n]
	if e == nil || !e.waiting {
		return ""
	}
	x := q.exceeds(e)
	if x == nil {
		return ""
	}
	name := map[string]string{"jobs": "running", "user-jobs": "user-running", "pool-jobs": "pool-running", inPools: inPools}[x.Limit]
	before := 0
	for _, o := range slices.SortedFunc(maps.Keys(q.lines), compareOwners) {
		inGroup := x.Limit == inPools && slices.ContainsFunc(q.lines[o][0].groups, func(g Group) bool { return g.Of == x.Of })
		if inGroup || x.Limit == "jobs" || x.Limit == "user-jobs" && o.user == e.User || x.Limit == "pool-jobs" && o.pool == e.Pool {
			i, _ := slices.BinarySearchFunc(q.lines[o], e, precedence)
			before += i
		}
	}
	return fmt.Sprintf("it waits in line; running jobs of %s: %d, at most %d (%s); waiting jobs before it: %d", cmp.Or(x.Of, "the cluster"), x.Have, x.Max, name, before)
}

func compareOwners(a, b owner) int {
	return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.pool, b.pool))
}
