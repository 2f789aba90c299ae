// Package seek finds the leader: it says which address to try next, for how long, and when to
// give up. Callers connect, and report the results.
//
// A search has rounds, with pauses between. A round tries every known address once: the last
// leader first, the others in random order, so that many clients do not ask the same job
// tracker. An address that a job tracker names as the leader's comes next. The time limit of a
// try grows with each round. There is at least one try, even without patience.
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
	// ErrUnreachable reports that no job tracker has answered within a client's patience.
	ErrUnreachable = errors.New("job tracker unreachable")
	// ErrNoLeader reports that job trackers answer, but none leads within a client's
	// patience: too few of them reach each other.
	ErrNoLeader = fmt.Errorf("no leader among the job trackers: %w", core.ErrNotLeader)
)

// Pauses between rounds.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 300 * time.Millisecond
)

// Time limits of a try, which grow with each round: all job trackers may be slow.
const (
	firstTry = 2 * time.Second
	lastTry  = 16 * time.Second
)

// slowAfter is how long a search takes before Slow reports it.
const slowAfter = 5 * time.Second

// Known has the addresses of job trackers that a client knows. Make one with [New].
type Known struct {
	addrs []string // as configured

	mu     sync.Mutex
	leader string   // address of the last leader; empty: not known
	hinted []string // addresses of leaders that are not among addrs
}

// New makes a Known with the host:port addresses of some job trackers.
func New(addrs []string) *Known { return &Known{addrs: addrs} }

// Leads records that addr leads.
func (k *Known) SetLeader(addr string) {
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

// learn adds an address that a job tracker has named as the leader's.
func (k *Known) learn(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	const limit = 16
	if !slices.Contains(k.addrs, addr) && !slices.Contains(k.hinted, addr) {
		k.hinted = append(k.hinted[max(0, len(k.hinted)-limit+1):], addr)
	}
}

// round lists every known address: the leader first, avoid last, the others in random order.
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

// Search tries addresses until the leader is found.
type Search struct {
	known    *Known
	patience time.Duration
	began    time.Time
	avoid    string   // address of the leader that was lost
	queue    []string // of this round
	tried    []string // in this round
	rounds   int      // begun
	last     error    // of the last try
	reported bool     // by Slow
	answered bool     // a job tracker has answered in this round
	before   bool     // and in the round before
}

// Search begins a search, which ends after the patience.
func (k *Known) Search(patience time.Duration) *Search {
	return &Search{known: k, patience: patience, began: time.Now()}
}

// Next returns the next address to try, and its time limit. It fails when ctx ends or the
// patience is over.
func (s *Search) Next(ctx context.Context) (addr string, limit time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return "", 0, context.Cause(ctx)
	}
	left := s.patience - time.Since(s.began)
	if s.rounds > 0 && left <= 0 {
		return "", 0, s.failure()
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

// Lost records that addr no longer leads, and changes the patience of the search.
func (s *Search) Lost(addr string, patience time.Duration) { s.avoid, s.patience = addr, patience }

// Failed records that addr gave no answer.
func (s *Search) Failed(addr string, err error) {
	s.last = err
	s.known.lost(addr)
}

// Answered records that addr answered but does not lead. Hint is the leader's address; empty: none.
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

// Slow reports, once, that the search takes long, and its duration so far.
func (s *Search) Slow() (since time.Duration, slow bool) {
	since = time.Since(s.began)
	if s.reported || since < slowAfter {
		return since, false
	}
	s.reported = true
	return since, true
}

// Reported says whether Slow has reported it.
func (s *Search) Reported() bool { return s.reported }

// failure returns the error of a search that has found no leader.
func (s *Search) failure() error {
	tried := slices.Sorted(slices.Values(s.known.round("")))
	if s.answered || s.before {
		return fmt.Errorf("%w: tried %s for %v: %w", ErrNoLeader, strings.Join(tried, ", "), s.patience, s.last)
	}
	return fmt.Errorf("%w: tried %s for %v: %w", ErrUnreachable, strings.Join(tried, ", "), s.patience, s.last)
}
