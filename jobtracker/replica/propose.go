package replica

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

// proposal is an entry to be committed.
type proposal struct {
	key  string
	data []byte
	at   time.Time // when it was proposed
}

// proposals is the queue of proposals for raft. It also knows how long all proposals have failed.
type proposals struct {
	ready chan struct{} // has a value when queue is not empty

	mu    sync.Mutex
	queue []proposal

	// Times of the first and last failed proposal since the last commit. After a pause of more than
	// patience, first begins again.
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

// failed records that a proposal was not committed, or not in time.
func (p *proposals) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) > p.patience {
		p.first = now
	}
	p.last = now
}

// progressed records a commit or a change of the leader.
func (p *proposals) progressed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.first, p.last = time.Time{}, time.Time{}
}

// stuck reports whether all proposals have failed for longer than patience.
func (p *proposals) stuck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last.Sub(p.first) > p.patience
}

// Propose implements [jobtracker.Log].
func (r *Replica) Propose(key string, data []byte) {
	if !r.rejectLong(key, data) {
		r.proposals.put(proposal{key, data, time.Now()})
	}
}

// proposeLoop passes proposals to raft.
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

// propose passes a batch to raft; another goroutine waits for the results. The whole batch has one
// deadline, since raft may not take any of it.
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
			err := f.Error()
			w.settle(i, err)
			if err == nil {
				inst.tellFollowers()
			}
		}
		w.timer.Stop()
	}()
}

// refused is the future of a proposal that was not passed to raft.
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

// waiting is a batch that raft has. Each proposal is settled by its future, or undecided at the
// deadline, because raft's futures may never return.
type waiting struct {
	r     *Replica
	batch []proposal
	timer *time.Timer

	mu      sync.Mutex
	settled int // number of settled proposals, in order
	expired bool
}

func (w *waiting) settle(i int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = i + 1
	switch {
	case err == nil:
		w.r.proposals.progressed()
		w.r.commits.AddTime(time.Since(w.batch[i].at))
	case !w.expired:
		w.r.undecided(w.batch[i:i+1], err)
	}
}

func (w *waiting) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired = true
	if unsettled := w.batch[w.settled:]; len(unsettled) > 0 {
		w.r.undecided(unsettled, errors.New("no answer in time"))
	}
}

// undecided reports that the result of proposals is not known. The delay keeps the core from
// retrying in a busy loop while raft refuses.
func (r *Replica) undecided(batch []proposal, why error) {
	r.proposals.failed()
	r.cfg.Logger.Debug("proposals are undecided", "first", batch[0].key, "number", len(batch), "error", why)
	evs := make([]jobtracker.LogEvent, len(batch))
	for i, p := range batch {
		evs[i].Event = core.Undecided{Key: p.key}
	}
	time.AfterFunc(r.cfg.Timeout/10, func() { r.events.put(evs...) })
}
