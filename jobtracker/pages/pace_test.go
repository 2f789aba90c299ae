package pages

import (
	"testing"
	"time"
)

// TestPace: open pages that cost much are loaded less often, so that they take no more than their share; once they are
// closed, pages are loaded often again.
func TestPace(t *testing.T) {
	var p pace
	now := testNow
	load := func(pages int, took time.Duration) (pause time.Duration, share float64) {
		var spent, passed time.Duration
		for range 10 { // the share of the last rounds
			spent, passed = 0, 0
			for spent == 0 || passed < mostPause {
				for range pages {
					pause = p.after(now, took)
					spent += took
				}
				now, passed = now.Add(pause), passed+pause
			}
		}
		return pause, spent.Seconds() / passed.Seconds()
	}
	if pause, _ := load(1, time.Millisecond); pause != leastPause {
		t.Errorf("a cheap page waits %v", pause)
	}
	if pause, share := load(50, 8*time.Millisecond); share > 1.5*pagesShare || pause >= mostPause {
		t.Errorf("50 pages take %.3f of a processor at a pause of %v", share, pause)
	}
	if pause, _ := load(50, time.Second); pause != mostPause {
		t.Errorf("dear pages wait %v", pause)
	}
	if pause, _ := load(1, time.Millisecond); pause != leastPause {
		t.Errorf("after the others are closed, a page waits %v", pause)
	}
}
