package core

import (
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestUnequalTrackers compares HMHS with FIFO. On trackers that are fast for some jobs and slow for
// others it ends a batch sooner if the jobs ran before. Otherwise it is not worse. Unlike in
// docs/papers/hmhs.md, plans and queues are renewed as tasks end.
func TestUnequalTrackers(t *testing.T) {
	for _, c := range []struct {
		name    string
		factor  func(p *paced, tracker int) float64
		runs    int
		maxPart float64 // of FIFO's makespan
	}{
		{"pairs", (*paced).pairFactor, 1, 1.03},
		{"pairs, known", (*paced).pairFactor, 2, 0.8},
		{"slow", slowFactor, 1, 1.03},
		{"slow, known", slowFactor, 2, 1.03},
	} {
		fifo, hmhs := time.Duration(0), time.Duration(0)
		for seed := range uint64(4) {
			fifo += makespan(t, "fifo", seed+1, c.factor, c.runs)
			hmhs += makespan(t, "hmhs", seed+1, c.factor, c.runs)
		}
		part := hmhs.Seconds() / fifo.Seconds()
		t.Logf("%s: %.2f of FIFO's makespan", c.name, part)
		if part > c.maxPart {
			t.Errorf("%s: HMHS takes %.2f of FIFO's makespan, want at most %.2f", c.name, part, c.maxPart)
		}
	}
}

func (p *paced) pairFactor(int) float64 { return 0.1 + 0.9*p.rnd.Float64() }

func slowFactor(_ *paced, tracker int) float64 { return []float64{0.25, 0.5, 0.75, 1}[tracker%4] }

// makespan runs the same ten jobs several times, and returns the makespan of the last run.
func makespan(t *testing.T, scheduler string, seed uint64, factor func(*paced, int) float64, runs int) time.Duration {
	const jobs = 10
	p := newPaced(t, seed, wire.Scheduling{Scheduler: scheduler}, 20, 2, 1)
	var drawn []*pacedJob
	for i := range jobs {
		drawn = append(drawn, p.draw("maps", i))
		for k, tr := range p.trackers {
			tr.slowness[drawn[i].name] = factor(p, k)
		}
	}
	var began time.Duration
	for range runs {
		p.records, began = nil, p.now
		for i, j := range drawn {
			again := *j
			again.submitAt = p.now + time.Duration(i)*time.Millisecond
			p.submit(&again)
		}
		p.run(jobs)
	}
	return p.now - began
}
