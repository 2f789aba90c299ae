// Package seek looks for the job tracker that leads: it says which address to try next, for
// how long, and when to give up, and learns from how that went. It connects to nobody.
//
// A search goes in rounds. In each, every known address is tried once: the last leader
// first, the others in any order, so that many clients do not all ask the same one. A hint
// of where the leader is comes next. Between rounds it pauses; a try may take longer in
// each. There is at least one try, however little the patience.
//
// A [Known] may be used by many goroutines, a [Search] by one.
package seek

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
)

var (
	// ErrUnreachable reports that no job tracker has answered for a client's patience.
	ErrUnreachable = errors.New("job tracker unreachable")
	// ErrNoLeader reports that job trackers answer, but none has led for a client's
	// patience: a majority of them does not reach each other.
	ErrNoLeader = fmt.Errorf("no leader among the job trackers: %w", core.ErrNotLeader)
)

// Between two rounds in which every address was tried in vain.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 300 * time.Millisecond
)

// How long one job tracker may take for one answer: longer in every round, since
// a slow answer may be all there is.
const (
	firstTry = 2 * time.Second
	lastTry  = 16 * time.Second
)

// tellAfter is how long a client looks for a leader before it says that it does.
const tellAfter = 5 * time.Second

// Known is what a client has learnt of its job trackers. Make one with [New].
type Known struct {
	addrs []string // as configured

	mu     sync.Mutex
	leader string   // address that has led last; empty: not known
	hinted []string // addresses of leaders that are not among addrs
}

// New knows the host:port addresses of some job trackers.
func New(addrs []string) *Known { return &Known{addrs: addrs} }

// Leads notes that addr leads.
func (k *Known) Leads(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leader = addr
}

// lost forgets that addr leads.
func (k *Known) lost(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leader == addr {
		k.leader = ""
	}
}

// learn keeps an address that a job tracker has named as the leader's.
func (k *Known) learn(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	const most = 16
	if !slices.Contains(k.addrs, addr) && !slices.Contains(k.hinted, addr) {
		k.hinted = append(k.hinted[max(0, len(k.hinted)-most+1):], addr)
	}
}

// round is every known address once: the leader first, avoid last, the others in any order.
func (k *Known) round(avoid string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := append(slices.Clone(k.addrs), k.hinted...)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	rank := func(addr string) int {
		switch addr {
		case k.leader:
			return -1
		case avoid:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	return all
}

// Search goes from address to address until the leader is found.
type Search struct {
	known    *Known
	patience time.Duration
	began    time.Time
	avoid    string   // address of the leader that was lost
	queue    []string // of this round
	tried    []string // in this round
	rounds   int      // begun
	last     error    // of the last try
	told     bool     // that this takes long
	answered bool     // somebody in this round or the one before
	before   bool     // somebody in the round before
}

// Search begins a search, which is given up after the patience.
func (k *Known) Search(patience time.Duration) *Search {
	return &Search{known: k, patience: patience, began: time.Now()}
}

// Next is the address to try now, and for how long. It fails when ctx ends or the
// patience has run out.
func (s *Search) Next(ctx context.Context) (addr string, limit time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return "", 0, context.Cause(ctx)
	}
	left := s.patience - time.Since(s.began)
	if s.rounds > 0 && left <= 0 {
		return "", 0, s.inVain()
	}
	if len(s.queue) == 0 {
		if err := s.pause(ctx, left); err != nil {
			return "", 0, err
		}
		s.queue, s.tried = s.known.round(s.avoid), nil
		s.answered, s.before = false, s.answered
		s.rounds++
	}
	if len(s.queue) == 0 {
		return "", 0, fmt.Errorf("%w: no address is known", ErrUnreachable)
	}
	addr, s.queue = s.queue[0], s.queue[1:]
	s.tried = append(s.tried, addr)
	return addr, min(firstTry<<min(max(s.rounds-1, 0), 8), lastTry), nil
}

// pause waits before every round but the first.
func (s *Search) pause(ctx context.Context, left time.Duration) error {
	if s.rounds == 0 {
		return nil
	}
	pause := min(firstPause<<min(s.rounds-1, 8), lastPause)
	pause = pause/2 + rand.N(pause/2+1)
	timer := time.NewTimer(min(pause, max(left, 0)))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Lost says that addr led until now, and gives the search another patience.
func (s *Search) Lost(addr string, patience time.Duration) { s.avoid, s.patience = addr, patience }

// Failed notes why addr, which gave no answer, is not the leader.
func (s *Search) Failed(addr string, err error) {
	s.last = err
	s.known.lost(addr)
}

// Answered notes why addr, which did, is not the leader, and follows its hint; empty: none.
func (s *Search) Answered(addr string, err error, hint string) {
	s.Failed(addr, err)
	s.answered = true
	if hint == "" || hint == addr {
		return
	}
	s.known.learn(hint)
	if !slices.Contains(s.tried, hint) {
		s.queue = slices.DeleteFunc(s.queue, func(a string) bool { return a == hint })
		s.queue = slices.Insert(s.queue, 0, hint)
	}
}

// Slow says, once, that the search takes long, and for how long it has gone on.
func (s *Search) Slow() (since time.Duration, slow bool) {
	since = time.Since(s.began)
	if s.told || since < tellAfter {
		return since, false
	}
	s.told = true
	return since, true
}

// Told says whether Slow has said so.
func (s *Search) Told() bool { return s.told }

// inVain says what a whole search has come to.
func (s *Search) inVain() error {
	tried := slices.Sorted(slices.Values(s.known.round("")))
	if s.answered || s.before {
		return fmt.Errorf("%w: tried %s for %v: %w", ErrNoLeader, strings.Join(tried, ", "), s.patience, s.last)
	}
	return fmt.Errorf("%w: tried %s for %v: %w", ErrUnreachable, strings.Join(tried, ", "), s.patience, s.last)
}
