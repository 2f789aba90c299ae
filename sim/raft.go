package sim

import (
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
)

// raft is a model of the replicated log: one committed sequence, a leader with proposals under
// way, and each job tracker's progress. When a leader loses its term, its proposals are
// committed up to some point and lost from there.
type raft struct {
	w               *world
	log             []logged // committed
	term            uint64
	leader          *jobTracker   // nil: none
	inFlight        []*proposal   // of the leader, in order
	leaderlessSince time.Duration // since when no leader has had a quorum
	electionAfter   time.Duration // time without a working leader before an election
}

type logged struct {
	key   string
	entry core.Entry
}

type proposal struct {
	key  string
	data []byte
	term uint64
}

const (
	raftInterval  = 50 * time.Millisecond  // how often members check the leader
	raftLease     = 250 * time.Millisecond // a leader without a quorum steps down after this
	raftElection  = 500 * time.Millisecond
	commitTime    = 10 * time.Millisecond
	lateUndecided = time.Second
)

func newRaft(w *world) *raft {
	r := &raft{w: w}
	r.resetElection()
	r.checkLeader()
	return r
}

func (r *raft) resetElection() {
	r.electionAfter = raftElection + r.w.upTo(raftElection)
	r.leaderlessSince = r.w.now
}

// quorum reports whether a job tracker can reach a majority, including itself.
func (r *raft) quorum(n *jobTracker) bool {
	if !n.alive() {
		return false
	}
	reachable := 0
	for _, other := range r.w.jts {
		if other == n || other.alive() && r.w.connected(n.name, other.name) {
			reachable++
		}
	}
	return reachable > len(r.w.jts)/2
}

// checkLeader runs raft's timers: it keeps the leader, or deposes it and elects another.
func (r *raft) checkLeader() {
	w := r.w
	w.after(raftInterval, r.checkLeader)
	switch {
	case r.leader != nil && r.leader.term != r.term: // it has died since
		r.leader = nil
	case r.leader != nil && r.quorum(r.leader):
		r.leaderlessSince = w.now
	case r.leader != nil && r.leader.alive() && w.now-r.leaderlessSince >= raftLease:
		r.depose(r.leader)
		r.leader = nil
	case w.now-r.leaderlessSince >= r.electionAfter:
		r.elect(nil)
	}
	for _, n := range w.jts {
		if r.leader != nil && n.alive() && w.reaches(r.leader.name, n.name) {
			r.catchUp(n)
		}
	}
}

// depose tells a job tracker, once it runs, that it no longer leads.
func (r *raft) depose(n *jobTracker) { n.fromLog(n.lostLeadership) }

// elect makes a job tracker with a quorum the leader, but not the given one.
func (r *raft) elect(except *jobTracker) {
	w := r.w
	r.resetElection()
	var eligible []*jobTracker
	for _, n := range w.jts {
		if n != except && r.quorum(n) {
			eligible = append(eligible, n)
		}
	}
	if len(eligible) == 0 {
		return
	}
	old := r.leader
	r.leader = nil
	r.settle()
	if old != nil {
		if old.alive() && w.chance(0.5) {
			w.after(w.upTo(raftLease), func() { r.depose(old) })
		} else {
			r.depose(old)
		}
	}
	r.term++
	n := eligible[w.rnd.IntN(len(eligible))]
	r.leader = n
	w.note("%s is elected for term %d, %d entries in the log", n.name, r.term, len(r.log))
	// Entries of earlier terms may arrive after the news of the election.
	late := min(w.rnd.IntN(3), len(r.log)-n.applied)
	r.catchUpTo(n, len(r.log)-max(late, 0))
	term := r.term
	n.fromLog(func() { n.elected(term) })
	r.catchUp(n)
}

// settle decides the proposals of a leader that lost its term.
func (r *raft) settle() {
	for range r.w.rnd.IntN(len(r.inFlight) + 1) {
		r.commit()
	}
	for _, p := range r.inFlight {
		r.w.note("lost: %s", p.key)
	}
	r.inFlight = nil
}

// propose takes a leader's proposal. A job tracker that no longer leads gets no answer for a
// while.
func (r *raft) propose(n *jobTracker, key string, data []byte) {
	w := r.w
	if n != r.leader || n.term != r.term {
		n.undecided(lateUndecided, key)
		return
	}
	if w.fault(w.rates.undecided / 2) { // it never reaches the log
		w.note("undecided and lost: %s", key)
		if w.sabotage != loseProposals {
			n.undecided(w.upTo(lateUndecided), key)
		}
		return
	}
	if kind, _, _ := strings.Cut(key, " "); kind == "committed" || kind == "committing" || kind == "granted" || kind == "ended" {
		w.strikeAtCommit(nil, nil)
	}
	p := &proposal{key, data, r.term}
	r.inFlight = append(r.inFlight, p)
	w.after(w.upTo(commitTime), func() { r.decide(p, n) })
	if w.sabotage == applyEarly {
		n.queued++
		x := logged{key, core.Entry{Index: uint64(n.queued), Term: r.term, Data: data}}
		n.fromLog(func() { n.apply(x) })
	}
	if w.fault(w.rates.undecided / 2) {
		n.undecided(w.upTo(commitTime), key)
	}
}

// confirm answers with the term in which a job tracker leads; 0: it does not.
func (r *raft) confirm(n *jobTracker, answer func(term uint64)) {
	n.later(r.w.upTo(commitTime), func() {
		if n != r.leader || n.term != r.term || !r.quorum(n) {
			answer(0)
			return
		}
		answer(n.term)
	})
}

// undecided tells a job tracker after a while that it will not learn the outcome of a proposal.
func (n *jobTracker) undecided(after time.Duration, key string) {
	life := n.life
	n.w.after(after, func() {
		if n.life == life {
			n.fromLog(func() { n.step(core.Undecided{Key: key}) })
		}
	})
}

// decide commits the proposals up to p, if the leader still can.
func (r *raft) decide(p *proposal, n *jobTracker) {
	w := r.w
	for _, x := range r.inFlight {
		if x != p {
			continue
		}
		if n != r.leader || !r.quorum(n) {
			w.after(raftInterval, func() { r.decide(p, n) })
			return
		}
		for len(r.inFlight) > 0 {
			first := r.inFlight[0]
			r.commit()
			if first == p {
				return
			}
		}
	}
}

// commit appends the oldest proposal to the log.
func (r *raft) commit() {
	p := r.inFlight[0]
	r.inFlight = r.inFlight[1:]
	x := logged{p.key, core.Entry{Index: uint64(len(r.log) + 1), Term: p.term, Data: p.data}}
	r.log = append(r.log, x)
	r.w.note("entry %d: %s", x.entry.Index, x.key)
	r.w.book.checkEntry(r.w, x)
	for _, n := range r.w.jts {
		if n == r.leader {
			r.catchUp(n)
		} else {
			r.w.after(r.w.upTo(3*commitTime), func() {
				if r.leader != nil && r.w.reaches(r.leader.name, n.name) {
					r.catchUp(n)
				}
			})
		}
	}
}

func (r *raft) catchUp(n *jobTracker) { r.catchUpTo(n, len(r.log)) }

// catchUpTo sends a job tracker the log up to some entry. If it is far behind, it may get the
// leader's snapshot first.
func (r *raft) catchUpTo(n *jobTracker, to int) {
	if !n.up || n.queued >= to {
		return
	}
	if n != r.leader && r.w.chance(0.5) {
		n.fromLog(n.lostLeadership) // the news of a later term comes before the entries of that term
	}
	if source := r.leader; to-n.queued > 40 && source != nil && source != n && source.alive() && source.applied > n.queued && r.w.chance(0.5) {
		data, at := source.snapshot(), source.applied
		if r.w.sabotage == oldSnapshots && source.saved != nil {
			data = source.saved
		}
		n.queued = at
		n.fromLog(func() { n.restore(data, at) })
	}
	for n.queued < to {
		if r.w.sabotage == swapEntries && n != r.leader && n.queued+1 < to {
			// The indexes stay in order, so the core accepts both.
			x, y := r.log[n.queued], r.log[n.queued+1]
			x.entry.Data, y.entry.Data = y.entry.Data, x.entry.Data
			n.queued += 2
			n.fromLog(func() { n.apply(x) })
			n.fromLog(func() { n.apply(y) })
			continue
		}
		x := r.log[n.queued]
		n.queued++
		n.fromLog(func() { n.apply(x) })
	}
}
