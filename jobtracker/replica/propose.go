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

// proposals are those that raft was not given yet, and since when others are open.
type proposals struct {
	ready chan struct{} // has a value when queue is not empty

	mu    sync.Mutex
	queue []proposal
	open  map[string]time.Time // proposed and not known to be committed: since when
	leads bool
}

func newProposals() *proposals {
	return &proposals{ready: make(chan struct{}, 1), open: make(map[string]time.Time)}
}

func (p *proposals) put(x proposal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, x)
	if _, ok := p.open[x.key]; !ok {
		p.open[x.key] = time.Now()
	}
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

func (p *proposals) committed(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, key)
}

// lead forgets what an earlier leader waited for.
func (p *proposals) lead(leads bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leads = leads
	clear(p.open)
}

// oldest is when a leader began to wait for the proposal it has waited for longest.
func (p *proposals) oldest() (since time.Time, waits bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leads {
		return time.Time{}, false
	}
	for _, at := range p.open {
		if !waits || at.Before(since) {
			since, waits = at, true
		}
	}
	return since, waits
}

// Propose implements [jobtracker.Log].
func (r *Replica) Propose(key string, data []byte) {
	r.proposals.put(proposal{key, data})
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

// propose hands a batch to raft and leaves the waiting to another goroutine.
func (r *Replica) propose(batch []proposal) {
	inst := r.instance()
	futures := make([]raft.Future, len(batch))
	for i, p := range batch {
		futures[i] = r.apply(inst, p)
	}
	w := &waiting{r: r, batch: batch}
	go func() {
		for i, f := range futures {
			w.settle(i, f.Error())
		}
	}()
	w.timer = time.AfterFunc(4*r.cfg.Timeout, w.expire)
}

// refused is a future of what raft was not asked for.
type refused struct{ err error }

func (f refused) Error() error { return f.err }

var errRestarting = errors.New("raft is being restarted")

func (r *Replica) apply(inst *instance, p proposal) raft.Future {
	if inst == nil {
		return refused{errRestarting}
	}
	if r.cfg.refuse != nil {
		if err := r.cfg.refuse(); err != nil {
			return refused{err}
		}
	}
	return inst.raft.ApplyLog(raft.Log{Data: p.data, Extensions: r.unsentSum()}, 4*r.cfg.Timeout)
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
		w.r.proposals.committed(w.batch[i].key)
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
	r.cfg.Logger.Debug("proposals are undecided", "first", batch[0].key, "number", len(batch), "error", why)
	evs := make([]jobtracker.LogEvent, len(batch))
	for i, p := range batch {
		evs[i].Event = core.Undecided{Key: p.key}
	}
	time.AfterFunc(r.cfg.Timeout/10, func() { r.events.put(evs...) })
}
