// Package seek finds the leader: it decides which address to try next, for how long, and when to
// give up. Callers connect, and report the results.
//
// A search has rounds, with pauses between. A round tries every known address once: the last leader
// first, the others in random order, so that many clients do not ask the same job tracker. If a job
// tracker names the leader, that address comes next. The time limit of a request grows with each
// round. There is at least one request, even without patience. If all addresses of a round belong to
// another authority, or if only one end uses TLS, the search ends: waiting would not help.
//
// Many goroutines may use a [Known], one a [Search].
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

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core"
)

var (
	// ErrUnreachable reports that no job tracker answered within the patience of a search.
	ErrUnreachable = errors.New("job tracker unreachable")
	// ErrNoLeader reports that job trackers answered, but none led within the patience of a search:
	// perhaps too few of them reach each other.
	ErrNoLeader = fmt.Errorf("no leader among the job trackers: %w", core.ErrNotLeader)
	// ErrProtection reports an address where only one end uses TLS. Callers wrap it.
	ErrProtection = errors.New("only one end uses TLS")
)

// Pauses between rounds.
const (
	minPause = 50 * time.Millisecond
	maxPause = 300 * time.Millisecond
)

// Time limits of a request. They grow with each round, since all job trackers may be slow.
const (
	minTimeout = 2 * time.Second
	maxTimeout = 16 * time.Second
)

// slowAfter is the duration after which Slow reports a search.
const slowAfter = 5 * time.Second

// Known has the addresses of job trackers that a client knows. Make one with [New].
type Known struct {
	addrs []string // as configured

	mu     sync.Mutex
	leader string   // address of the last leader; empty: not known
	hinted []string // other addresses that job trackers have named as leaders
}

// New makes a Known with the host:port addresses of some job trackers.
func New(addrs []string) *Known { return &Known{addrs: addrs} }

// SetLeader records that addr leads.
func (k *Known) SetLeader(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leader = addr
}

// unsetLeader records that addr no longer leads.
func (k *Known) unsetLeader(addr string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leader == addr {
		k.leader = ""
	}
}

// addHint adds an address that a job tracker has named as the leader's.
func (k *Known) addHint(addr string) {
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
	known          *Known
	patience       time.Duration
	began          time.Time
	avoid          string   // address of the leader that was lost
	queue          []string // addresses still to try in this round
	tried          []string // addresses tried in this round
	rounds         int      // number of rounds begun
	last           error    // error of the last request
	reported       bool     // Slow has reported it
	answered       bool     // a job tracker has answered in this round
	answeredBefore bool     // a job tracker answered in the round before
	hopeless       int      // addresses of this round that will never serve this client
}

// Search begins a search that may take as long as patience.
func (k *Known) Search(patience time.Duration) *Search {
	return &Search{known: k, patience: patience, began: time.Now()}
}

// Next returns the next address to try, and its time limit. It fails when ctx ends or the
// patience is over.
func (s *Search) Next(ctx context.Context) (addr string, limit time.Duration, err error) {
	if err := ctx.Err(); err != nil {
		return "", 0, context.Cause(ctx)
	}
	remaining := s.patience - time.Since(s.began)
	if s.rounds > 0 && remaining <= 0 {
		return "", 0, s.searchError()
	}
	if len(s.queue) == 0 {
		if s.hopeless > 0 && s.hopeless == len(s.tried) {
			return "", 0, fmt.Errorf("%w: tried %s: %w", ErrUnreachable, strings.Join(s.tried, ", "), s.last)
		}
		if err := s.pause(ctx, remaining); err != nil {
			return "", 0, err
		}
		s.queue, s.tried, s.hopeless = s.known.round(s.avoid), nil, 0
		s.answered, s.answeredBefore = false, s.answered
		s.rounds++
	}
	if len(s.queue) == 0 {
		return "", 0, fmt.Errorf("%w: no address is known", ErrUnreachable)
	}
	addr, s.queue = s.queue[0], s.queue[1:]
	s.tried = append(s.tried, addr)
	return addr, min(minTimeout<<min(max(s.rounds-1, 0), 8), maxTimeout), nil
}

// pause waits before every round except the first.
func (s *Search) pause(ctx context.Context, remaining time.Duration) error {
	if s.rounds == 0 {
		return nil
	}
	pause := min(minPause<<min(s.rounds-1, 8), maxPause)
	pause = pause/2 + rand.N(pause/2+1)
	timer := time.NewTimer(min(pause, max(remaining, 0)))
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
	if errors.Is(err, identity.ErrOtherAuthority) || errors.Is(err, ErrProtection) {
		s.hopeless++
	}
	s.known.unsetLeader(addr)
}

// Answered records that addr answered but does not lead. hint is the leader's address, if known.
func (s *Search) Answered(addr string, err error, hint string) {
	s.Failed(addr, err)
	s.answered = true
	if hint == "" || hint == addr {
		return
	}
	s.known.addHint(hint)
	if !slices.Contains(s.tried, hint) {
		s.queue = slices.DeleteFunc(s.queue, func(a string) bool { return a == hint })
		s.queue = slices.Insert(s.queue, 0, hint)
	}
}

// Slow returns the duration of the search so far. It reports once that the search is slow.
func (s *Search) Slow() (since time.Duration, slow bool) {
	since = time.Since(s.began)
	if s.reported || since < slowAfter {
		return since, false
	}
	s.reported = true
	return since, true
}

// SlowReported reports whether Slow has reported a slow search.
func (s *Search) SlowReported() bool { return s.reported }

// searchError returns the error of a search that has found no leader.
func (s *Search) searchError() error {
	tried := slices.Sorted(slices.Values(s.known.round("")))
	if s.answered || s.answeredBefore {
		return fmt.Errorf("%w: tried %s for %v: %w", ErrNoLeader, strings.Join(tried, ", "), s.patience, s.last)
	}
	return fmt.Errorf("%w: tried %s for %v: %w", ErrUnreachable, strings.Join(tried, ", "), s.patience, s.last)
}
