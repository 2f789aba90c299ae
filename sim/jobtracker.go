package sim

import (
	"errors"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// jobTracker is a job tracker's process and its durable state.
type jobTracker struct {
	process
	core    *core.Core
	skew    time.Duration // of its wall clock
	term    uint64        // term in which it believes to lead; 0: none
	applied int           // entries of the log given to its core
	queued  int           // entries given to its core or on their way to it
	epoch   uint64        // of its last term as leader

	listings int // pages of inventories given to its core

	saved   []byte // snapshot on its disk
	savedAt int    // entries in it

	files    gate             // for effects on files
	policies map[string]*gate // by name: one call at once

	handshakes  time.Duration // when those under way are done
	links       map[core.Stream]*link
	lastStream  core.Stream
	inventories inventories
	answers     map[core.Token]func(core.Reply)
	lastToken   core.Token
}

func newJobTracker(w *world, name string) *jobTracker {
	n := &jobTracker{skew: w.upTo(2*time.Hour) - time.Hour}
	n.process = process{w: w, name: name, owner: n, timer: timer{posts: true}}
	w.must(writeFile(w, nonceFile(clusterOf(name)), []byte(nonceOf(name))))
	n.boot()
	return n
}

func (n *jobTracker) boot() {
	n.begin()
	n.core = core.New(core.Config{
		ID: n.name, Addr: n.addr(), Lease: lease, Staging: clusterStaging, Preemption: true,
		Cluster: clusterOf(n.name), Nonce: nonceOf(n.name), History: true, TidyPeriod: 10 * time.Minute,
		DrainServeTime: drainServes, DrainMaxTime: drainLasts,
		Scheduling: n.w.scheduling, Limits: n.w.shape.limits,
	})
	n.term, n.applied, n.queued = 0, 0, 0
	n.handshakes = 0
	n.files, n.policies = gate{p: &n.process, limit: maxFileEffects}, make(map[string]*gate)
	n.links, n.inventories = make(map[core.Stream]*link), inventories{}
	n.answers = make(map[core.Token]func(core.Reply))
	if n.saved != nil {
		n.queued = n.savedAt
		n.restore(n.saved, n.savedAt)
	}
	n.pollPools()
}

func (n *jobTracker) addr() string { return n.name + ":1" }

// clusterOf and nonceOf are the name and nonce of the cluster that a job tracker would
// bootstrap.
func clusterOf(name string) string { return "cluster-" + name }
func nonceOf(name string) string   { return "nonce-" + name }

func nonceFile(cluster string) string {
	return clusterStaging + "/" + wire.StagingClusters + "/" + cluster
}

func (n *jobTracker) died() {
	for _, l := range n.sortedLinks() {
		l.reset(l.tt)
	}
	n.links, n.answers, n.core = nil, nil, nil
}

func (n *jobTracker) sortedLinks() []*link {
	var all []*link
	for s := core.Stream(1); s <= n.lastStream; s++ {
		if l := n.links[s]; l != nil {
			all = append(all, l)
		}
	}
	return all
}

func (n *jobTracker) step(ev core.Event) {
	w := n.w
	if x, ok := ev.(core.FromTracker); ok {
		if _, ok := x.Message.(*wire.Inventory); ok {
			n.listings++
		}
	}
	u := n.use(ev)
	begin := w.stepping.meter.begin()
	commands := n.core.Step(n.clock(), ev)
	took := w.stepping.meter.since(begin)
	for _, c := range commands {
		u.addCommand(c)
	}
	w.stepping.meter.report(u, took)
	n.spend(&u, len(commands), func() {
		for _, c := range commands {
			w.digest.add(w, n.name, c)
			n.carryOut(c)
			if n.core == nil {
				return
			}
		}
	})
	n.checkState()
	n.wake(n.core.Wake())
}

func (n *jobTracker) tick(readUntil time.Duration) { n.step(core.Tick{ReadUntil: readUntil}) }

// checkState checks the visible state of the core.
func (n *jobTracker) checkState() {
	if n.core.IsLeader() {
		n.w.book.checkLeader(n.w, n)
	}
}

func (n *jobTracker) elected(term uint64) {
	if term < n.w.raft.term {
		return // the news came too late
	}
	n.term = term
	n.step(core.Elected{Term: term, Wall: n.wall()})
}

func (n *jobTracker) wall() int64 { return wallStart + (n.w.now + n.skew).Milliseconds() + 1 }

func (n *jobTracker) lostLeadership() {
	if n.term == 0 {
		return
	}
	n.w.note("%s is deposed", n.name)
	n.term = 0
	n.step(core.Deposed{})
}

func (n *jobTracker) apply(x logged) {
	n.applied++
	n.step(x.entry)
	if n.applied%n.w.stepping.factsEvery != 0 {
		return
	}
	n.w.book.checkFacts(n.w, n)
	if n.w.chance(0.03) {
		n.saved, n.savedAt = n.snapshot(), n.applied
	}
}

func (n *jobTracker) snapshot() []byte {
	for n.core.EntriesWait() {
		n.step(core.Tick{})
	}
	data, err := n.core.Snapshot()
	if err != nil {
		n.w.fail("snapshot of %s: %v", n.name, err)
	}
	return data
}

func (n *jobTracker) restore(data []byte, at int) {
	n.applied, n.term = at, 0
	n.step(core.Restored{Snapshot: data})
}

func (n *jobTracker) carryOut(c core.Command) {
	w := n.w
	switch c := c.(type) {
	case core.Propose:
		w.raft.propose(n, c.Key, c.Data)
	case core.Send:
		if l := n.links[c.Stream]; l != nil {
			w.book.checkSent(w, n, l, c.Message)
			l.toTracker(c.Message)
		}
	case core.CloseStream:
		if l := n.links[c.Stream]; l != nil {
			delete(n.links, c.Stream)
			l.finish(l.tt)
		}
	case core.Reply:
		if answer := n.answers[c.Token]; answer != nil {
			delete(n.answers, c.Token)
			n.answer(c, answer)
		} else {
			w.fail("%s answers request %d a second time: %+v", n.name, c.Token, c)
		}
	case core.LogLine:
	case core.Halt:
		w.fail("%s halts: %v", n.name, c.Err)
	default:
		n.effect(c)
	}
}

// answer answers a request. A refusal waits until the log confirms that the job tracker led.
func (n *jobTracker) answer(r core.Reply, answer func(core.Reply)) {
	if r.Err == nil || isNotLeader(r.Err) {
		answer(r)
		return
	}
	epoch := n.core.Epoch()
	n.w.raft.confirm(n, func(term uint64) {
		if term != epoch {
			r.Err = &core.NotLeaderError{}
		}
		answer(r)
	})
}

// request gives the core a client's request.
func (n *jobTracker) request(event func(core.Token) core.Event, answer func(core.Reply)) {
	n.lastToken++
	n.answers[n.lastToken] = answer
	n.step(event(n.lastToken))
}

// shakeHands returns the time until the handshake of a new connection is done.
func (n *jobTracker) shakeHands() time.Duration {
	n.handshakes = max(n.handshakes, n.w.now) + handshakeTime
	return n.handshakes - n.w.now
}

// accept registers a stream that a task tracker has opened.
func (n *jobTracker) accept(l *link) {
	n.lastStream++
	l.stream = n.lastStream
	n.links[l.stream] = l
}

func (n *jobTracker) received(l *link, m wire.Message, read time.Duration) {
	if n.links[l.stream] == l {
		n.step(core.FromTracker{Stream: l.stream, Message: m, ReadAt: read})
	}
}

func (n *jobTracker) closed(l *link) {
	if n.links[l.stream] == l {
		delete(n.links, l.stream)
		n.step(core.StreamClosed{Stream: l.stream})
	}
}

func isNotLeader(err error) bool { return errors.Is(err, core.ErrNotLeader) }
