package pages

import (
	"sync"
	"time"
)

const (
	pagesShare     = 0.02             // of a processor, which all pages may take
	leastPause     = 2 * time.Second  // between two reloads of a page
	mostPause      = 30 * time.Second // as live.js obeys
	leastPaceRound = 5 * time.Second
)

// pace says how long browsers wait until they load a page again, so that all open pages take a small share of
// a processor. In a round each open page is loaded about once, so their load is known after it.
type pace struct {
	mu    sync.Mutex
	began time.Time // of the round
	spent time.Duration
	pause time.Duration
}

// after counts the time that a page took, and returns the pause before its next reload.
func (p *pace) after(now time.Time, took time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pause = max(p.pause, leastPause)
	if p.began.IsZero() {
		p.began = now
	}
	p.spent += took
	if passed := now.Sub(p.began); passed >= max(leastPaceRound, p.pause) {
		load := float64(p.spent) / float64(passed)
		p.pause = min(max(time.Duration(float64(p.pause)*load/pagesShare), leastPause), mostPause)
		p.began, p.spent = now, 0
	}
	return p.pause
}
