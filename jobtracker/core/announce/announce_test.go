package announce

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// cluster has logs of jobs and the lines of trackers, and for each tracker a table of what it was told.
type cluster struct {
	t       fataler
	now     time.Duration
	current []map[int]wire.MapOutput // by job
	logs    []*Log
	lines   []Line
	told    []map[int]map[int]wire.MapOutput // by tracker, job, map; a job is missing if the tracker does not follow it
	sent    [][]time.Duration                // times of messages, by tracker
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newCluster(t fataler, jobs, maps, trackers int) *cluster {
	c, encoder := &cluster{t: t, lines: make([]Line, trackers), sent: make([][]time.Duration, trackers)}, new(wire.OutputEncoder)
	for n := range jobs {
		current := make(map[int]wire.MapOutput)
		c.current = append(c.current, current)
		c.logs = append(c.logs, NewLog(wire.JobID{N: n}, maps, encoder, func(m int) (wire.MapOutput, int32, bool) {
			o, ok := current[m]
			return o, int32((m + o.Attempt) % 7), ok
		}))
	}
	for range trackers {
		c.told = append(c.told, make(map[int]map[int]wire.MapOutput))
	}
	return c
}

func (c *cluster) choose(job, m, attempt int) {
	c.withdraw(job, m)
	server := fmt.Sprintf("t%d", (m+attempt)%7)
	o := wire.MapOutput{Map: m, Attempt: attempt, Tracker: server, Addr: server + ":1", Digest: uint64(attempt), Bytes: 1 << 20}
	c.current[job][m] = o
	c.logs[job].Add(m, o.Sum())
}

func (c *cluster) withdraw(job, m int) {
	if _, ok := c.current[job][m]; ok {
		c.logs[job].Remove(m)
		delete(c.current[job], m)
	}
}

func (c *cluster) follow(tracker, job int, knows bool) {
	c.logs[job].Follow(tracker)
	r := c.logs[job].Reader(tracker)
	if c.told[tracker][job] == nil {
		c.told[tracker][job] = make(map[int]wire.MapOutput)
	}
	if knows {
		r.Knows(c.sums(tracker, job))
	}
	r.All()
}

// sums is what the inventory of a tracker says.
func (c *cluster) sums(tracker, job int) []uint64 {
	sums := make([]uint64, len(c.logs[job].pages))
	for m, o := range c.told[tracker][job] {
		sums[m/wire.OutputsPage] += o.Sum()
	}
	return sums
}

// serve sends what is due, and returns whether lines still wait.
func (c *cluster) serve() (waiting bool) {
	for i := range c.lines {
		for job := range c.told[i] {
			if r := c.logs[job].Reader(i); r.Pending() {
				c.lines[i].Add(r)
			}
		}
		for c.lines[i].Len() > 0 {
			lists, _, ok := c.lines[i].Take(c.now)
			if !ok {
				waiting = true
				break
			}
			c.receive(i, lists)
		}
	}
	return waiting
}

func (c *cluster) receive(tracker int, lists []wire.OutputList) {
	c.t.Helper()
	total := 0
	for _, list := range lists {
		outputs, err := list.Block.Outputs()
		if err != nil || len(outputs) != list.N || list.N == 0 {
			c.t.Fatalf("a list of %d outputs with %d: %v", list.N, len(outputs), err)
		}
		total += list.N
		told := c.told[tracker][list.Job.N]
		if told == nil {
			c.t.Fatalf("tracker %d gets outputs of job %d, which it does not follow", tracker, list.Job.N)
		}
		for _, o := range outputs {
			if o != c.current[list.Job.N][o.Map] {
				c.t.Fatalf("tracker %d gets %+v, current is %+v", tracker, o, c.current[list.Job.N][o.Map])
			}
			told[o.Map] = o
		}
	}
	if total >= 2*wire.OutputsPage {
		c.t.Fatalf("a message of %d outputs", total)
	}
	if len(lists) > 0 {
		c.sent[tracker] = append(c.sent[tracker], c.now)
	}
}

// drain serves until nothing waits, and checks that each tracker knows all outputs of its jobs.
func (c *cluster) drain() {
	c.t.Helper()
	for c.serve() {
		c.now = NextTick(c.now)
	}
	for i, jobs := range c.told {
		for job, told := range jobs {
			for m, o := range c.current[job] {
				if told[m] != o {
					c.t.Fatalf("tracker %d was told %+v of job %d, and not %+v", i, told[m], job, o)
				}
			}
		}
	}
}

// checkPace checks the limit of messages in each second.
func (c *cluster) checkPace(limit int) {
	c.t.Helper()
	for i, times := range c.sent {
		first := 0
		for last, at := range times {
			for times[first] <= at-time.Second {
				first++
			}
			if n := last - first + 1; n > limit {
				c.t.Fatalf("tracker %d gets %d messages in the second before %v", i, n, at)
			}
		}
	}
}

// TestAnnounce tests that in the end each tracker knows the current outputs of the jobs that it
// follows, that it gets no output that is not current, and that it gets no more messages than the limit.
func TestAnnounce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const jobs, trackers = 3, 4
		maps := rapid.SampledFrom([]int{1, 10, wire.OutputsPage, 3*wire.OutputsPage + 5}).Draw(t, "maps")
		c := newCluster(t, jobs, maps, trackers)
		attempt := 0
		job, tracker := rapid.IntRange(0, jobs-1), rapid.IntRange(0, trackers-1)
		t.Repeat(map[string]func(*rapid.T){
			"choose": func(t *rapid.T) {
				attempt++
				c.choose(job.Draw(t, "job"), rapid.IntRange(0, maps-1).Draw(t, "map"), attempt)
			},
			"choose many": func(t *rapid.T) {
				j, from := job.Draw(t, "job"), rapid.IntRange(0, maps-1).Draw(t, "from")
				for m := from; m < min(maps, from+rapid.SampledFrom([]int{10, 2000}).Draw(t, "n")); m++ {
					attempt++
					c.choose(j, m, attempt)
				}
			},
			"withdraw": func(t *rapid.T) { c.withdraw(job.Draw(t, "job"), rapid.IntRange(0, maps-1).Draw(t, "map")) },
			"follow":   func(t *rapid.T) { c.follow(tracker.Draw(t, "tracker"), job.Draw(t, "job"), false) },
			"inventory": func(t *rapid.T) {
				c.follow(tracker.Draw(t, "tracker"), job.Draw(t, "job"), true)
			},
			"forget": func(t *rapid.T) {
				i, j := tracker.Draw(t, "tracker"), job.Draw(t, "job")
				c.logs[j].Forget(i)
				delete(c.told[i], j)
			},
			"stream ends": func(t *rapid.T) { c.lines[tracker.Draw(t, "tracker")].Clear() },
			"serve":       func(t *rapid.T) { c.serve() },
			"time passes": func(t *rapid.T) {
				c.now += time.Duration(rapid.IntRange(1, 200).Draw(t, "ms")) * time.Millisecond
			},
			"drain": func(t *rapid.T) { c.drain() },
		})
		c.drain()
		c.checkPace(Burst + (int(time.Second/Tick)+1)*PerTick)
	})
}

// TestPace tests the limit of messages to a tracker while outputs of many jobs are chosen all the time.
func TestPace(t *testing.T) {
	const jobs, maps = 20, 500
	c := newCluster(t, jobs, maps, 1)
	for job := range jobs {
		c.follow(0, job, false)
	}
	for m := range maps {
		for job := range jobs {
			c.choose(job, m, 1)
			c.serve()
		}
		c.now += 7 * time.Millisecond
	}
	c.drain()
	c.checkPace(58)
	if n := len(c.sent[0]); n < int(c.now/Tick) {
		t.Errorf("%d messages in %v", n, c.now)
	}
}

// TestLate tests that a tracker gets the outputs that have left the journal before it got them.
func TestLate(t *testing.T) {
	c := newCluster(t, 1, 3*wire.OutputsPage, 1)
	c.follow(0, 0, false)
	for i := range 5 * minJournal {
		c.choose(0, i%(3*wire.OutputsPage), i)
	}
	for i := range 3 * minJournal { // from here on the other maps do not change
		c.choose(0, i%100, i)
	}
	c.drain()
}

// TestShared tests the cost of announcing 100,000 maps to 1,000 trackers: blocks are encoded once, and
// trackers that know all outputs get nothing.
func TestShared(t *testing.T) {
	const maps, trackers = 100_000, 1000
	c := newCluster(t, 1, maps, trackers)
	for m := range maps {
		c.choose(0, m, 1)
	}
	sizes := make(map[*byte]int)
	messages := 0
	announceAll := func() {
		for more := true; more; c.now += Tick {
			more = false
			for i := range c.lines {
				if r := c.logs[0].Reader(i); r.Pending() {
					c.lines[i].Add(r)
				}
				for c.lines[i].Len() > 0 {
					lists, _, ok := c.lines[i].Take(c.now)
					if !ok {
						more = true
						break
					}
					messages++
					for _, list := range lists {
						sizes[&list.Block[0]] = len(list.Block)
					}
				}
			}
		}
	}
	for i := range c.lines {
		c.logs[0].Follow(i)
		c.logs[0].Reader(i).All()
	}
	announceAll()
	bytes := 0
	for _, n := range sizes {
		bytes += n
	}
	pages := (maps + wire.OutputsPage - 1) / wire.OutputsPage
	if len(sizes) != pages || c.logs[0].encoded != maps || messages != pages*trackers || bytes > 25*maps {
		t.Errorf("%d blocks of %d bytes, %d outputs encoded, %d messages; want %d blocks, each sent to all", len(sizes), bytes, c.logs[0].encoded, messages, pages)
	}
	// A new leader asks for inventories. One tracker misses an output.
	c.told[0][0] = c.current[0]
	sums := c.sums(0, 0)
	missing := c.current[0][maps-1]
	for i := range c.lines {
		known := slices.Clone(sums)
		if i == 7 {
			known[pages-1] -= missing.Sum()
		}
		c.logs[0].Reader(i).Knows(known)
		c.logs[0].Reader(i).All()
	}
	messages = 0
	announceAll()
	if messages != 1 {
		t.Errorf("%d messages to trackers that know all outputs but one, want 1", messages)
	}
}

// BenchmarkAnnounce announces a job of 100,000 maps to 1,000 trackers. An op is all of this.
func BenchmarkAnnounce(b *testing.B) {
	const maps, trackers = 100_000, 1000
	c := newCluster(b, 1, maps, trackers)
	for m := range maps {
		c.choose(0, m, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i := range c.logs[0].pages {
			c.logs[0].pages[i].encoded = wire.OutputList{}
		}
		for i := range c.lines {
			c.logs[0].Follow(i)
			c.logs[0].Reader(i).All()
			c.lines[i].Add(c.logs[0].Reader(i))
		}
		for more := true; more; c.now += Tick {
			more = false
			for i := range c.lines {
				for c.lines[i].Len() > 0 {
					if _, _, ok := c.lines[i].Take(c.now); !ok {
						more = true
						break
					}
				}
			}
		}
	}
}
