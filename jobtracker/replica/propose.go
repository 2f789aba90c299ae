package replica

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

// proposal is an entry that shall be committed.
type proposal struct {
	key  string
	data []byte
}

// proposals are those that raft was not given yet, and how others have fared.
type proposals struct {
	ready chan struct{} // has a value when queue is not empty

	mu    sync.Mutex
	queue []proposal

	// While nothing is committed: the first and the last proposal that failed since,
	// with less than patience between one and the next.
	first, last time.Time
	patience    time.Duration
}

func newProposals(patience time.Duration) *proposals {
	return &proposals{ready: make(chan struct{}, 1), patience: patience}
}

func (p *proposals) put(x proposal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, x)
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

func (p *proposals) take() []proposal {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := p.queue
	p.queue = nil
	return queue
}

// failed notes that a proposal was not committed, or not in time.
func (p *proposals) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) > p.patience {
		p.first = now
	}
	p.last = now
}

// well notes that something was committed, or that there is another leader.
func (p *proposals) well() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first, p.last = time.Time{}, time.Time{}
}

// stuck says whether proposals have failed for longer than patience, all of them.
func (p *proposals) stuck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.Sub(p.first) > p.patience
}

// Propose implements [jobtracker.Log].
func (r *Replica) Propose(key string, data []byte) {
	if !r.tooLong(key, data) {
		r.proposals.put(proposal{key, data})
	}
}

// proposeLoop gives raft what is proposed.
func (r *Replica) proposeLoop() {
	for {
		select {
		case <-r.proposals.ready:
			r.propose(r.proposals.take())
		case <-r.done:
			return
		}
	}
}

// propose hands a batch to raft and leaves the waiting to another goroutine. Raft may
// take nothing: the whole batch has one deadline.
func (r *Replica) propose(batch []proposal) {
	inst := r.instance()
	limit := 4 * r.cfg.Timeout
	deadline := time.Now().Add(limit)
	w := &waiting{r: r, batch: batch}
	w.timer = time.AfterFunc(limit, w.expire)
	futures := make([]raft.Future, len(batch))
	for i, p := range batch {
		futures[i] = r.apply(inst, p, time.Until(deadline))
	}
	go func() {
		for i, f := range futures {
			w.settle(i, f.Error())
		}
		w.timer.Stop()
	}()
}

// refused is a future of what raft was not asked for.
type refused struct{ err error }

func (f refused) Error() error { return f.err }

var errRestarting = errors.New("raft is being restarted")

func (r *Replica) apply(inst *instance, p proposal, wait time.Duration) raft.Future {
	if inst == nil {
		return refused{errRestarting}
	}
	if wait <= 0 {
		return refused{raft.ErrEnqueueTimeout}
	}
	if r.cfg.refuse != nil {
		if err := r.cfg.refuse(); err != nil {
			return refused{err}
		}
	}
	return inst.raft.ApplyLog(raft.Log{Data: p.data, Extensions: r.unsentSum()}, wait)
}

// waiting is a batch that raft was given. Each proposal in it is settled once, or
// answered as undecided when time is up; raft's futures may never return.
type waiting struct {
	r     *Replica
	batch []proposal
	timer *time.Timer

	mu      sync.Mutex
	settled int // how many of batch, from its start
	expired bool
}

func (w *waiting) settle(i int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = i + 1
	switch {
	case err == nil:
		w.r.proposals.well()
	case !w.expired:
		w.r.undecided(w.batch[i:i+1], err)
	}
}

func (w *waiting) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired = true
	if open := w.batch[w.settled:]; len(open) > 0 {
		w.r.undecided(open, errors.New("no answer in time"))
	}
}

// undecided reports after a moment that the outcome of proposals is not known. At
// once would make the core try again in a loop while raft refuses.
func (r *Replica) undecided(batch []proposal, why error) {
	r.proposals.failed()
	r.cfg.Logger.Debug("proposals are undecided", "first", batch[0].key, "number", len(batch), "error", why)
	evs := make([]jobtracker.LogEvent, len(batch))
	for i, p := range batch {
		evs[i].Event = core.Undecided{Key: p.key}
	}
	time.AfterFunc(r.cfg.Timeout/10, func() { r.events.put(evs...) })
}
