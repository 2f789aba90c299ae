package gather

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/wire"
)

func jobN(n int) wire.JobID { return wire.JobID{Start: 1, N: n} }

// fetchers take from a ration as fast as they may.
type fetchers struct {
	ration *rateLimiter
	ctx    context.Context
	mu     sync.Mutex
	got    map[int]float64 // bytes, by job
	wait   sync.WaitGroup
}

// begin has so many fetches of a job take some bytes at a time until it has most.
func (f *fetchers) begin(job, fetches, bytes int, most float64) {
	ctx := f.ctx
	for range fetches {
		f.wait.Go(func() {
			for f.took(job, 0) < most && f.ration.wait(ctx, jobN(job), bytes) == nil {
				f.took(job, bytes)
			}
		})
	}
}

func (f *fetchers) took(job, bytes int) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got[job] += float64(bytes)
	return f.got[job]
}

// during is what jobs get, in thousands of bytes a second, for some virtual time.
func (f *fetchers) during(d time.Duration) map[int]float64 {
	f.mu.Lock()
	clear(f.got)
	f.mu.Unlock()
	<-time.After(d)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	rates := make(map[int]float64)
	for job, bytes := range f.got {
		rates[job] = bytes / 1000 / d.Seconds()
	}
	return rates
}

// TestRation: who gets what of a thousand thousand bytes a second.
func TestRation(t *testing.T) {
	const all = 1e300
	for _, c := range []struct {
		name   string
		shares []wire.JobShare
		begin  func(f *fetchers)
		want   map[int]float64
	}{
		{"one job", nil, func(f *fetchers) { f.begin(1, 8, 32<<10, all) }, map[int]float64{1: 1000}},
		{"alike, however many fetches", nil, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 1, 4<<10, all)
		}, map[int]float64{1: 500, 2: 500}},
		{"the first has all", []wire.JobShare{{Job: jobN(2), Share: 1}, {Job: jobN(1), Share: 0}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 2, 32<<10, all)
			f.begin(3, 2, 32<<10, all)
		}, map[int]float64{2: 1000}},
		{"up to its share", []wire.JobShare{{Job: jobN(2), Share: 0.7}, {Job: jobN(1), Share: 0.3}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 2, 8<<10, all)
		}, map[int]float64{1: 300, 2: 700}},
		{"then those not named", []wire.JobShare{{Job: jobN(2), Share: 0.25}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 2, 8<<10, all)
			f.begin(3, 1, 8<<10, all)
		}, map[int]float64{1: 375, 2: 250, 3: 375}},
		{"nothing is left lying", []wire.JobShare{{Job: jobN(9), Share: 0.5}, {Job: jobN(2), Share: 0.25}, {Job: jobN(1), Share: 0.1}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 2, 8<<10, all)
		}, map[int]float64{1: 100, 2: 900}},
		{"what a job does not need", []wire.JobShare{{Job: jobN(2), Share: 1}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 1, 10000, 2e6)
		}, map[int]float64{1: 800, 2: 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				f := &fetchers{ration: newRateLimiter(1e6), ctx: ctx, got: make(map[int]float64)}
				f.ration.share(c.shares)
				c.begin(f)
				got := f.during(10 * time.Second)
				for job := range 4 {
					if got[job] < 0.97*c.want[job] || got[job] > 1.03*c.want[job]+20 {
						t.Errorf("got %v, want %v", got, c.want)
						break
					}
				}
				cancel()
				f.wait.Wait()
			})
		})
	}
}

// TestRationChanges: another Share counts for those who wait already, and who is
// cancelled takes nothing.
func TestRationChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fetchers{ration: newRateLimiter(1e6), ctx: ctx, got: make(map[int]float64)}
		f.begin(1, 4, 32<<10, 1e300)
		other, stop := context.WithCancelCause(t.Context())
		f.ctx = other // of those that begin from here on
		f.begin(2, 4, 32<<10, 1e300)
		steps := []struct {
			do    func()
			first int
		}{
			{func() { f.ration.share([]wire.JobShare{{Job: jobN(1), Share: 1}}) }, 1},
			{func() { f.ration.share([]wire.JobShare{{Job: jobN(2), Share: 1}, {Job: jobN(1), Share: 0}}) }, 2},
			{func() { stop(errors.New("enough")) }, 1},
		}
		for i, s := range steps {
			s.do()
			if got := f.during(5 * time.Second); got[s.first] < 970 || len(got) != 1 && got[3-s.first] > 30 {
				t.Errorf("step %d: %v", i, got)
			}
		}
		if err := f.ration.wait(other, jobN(2), 1<<20); fmt.Sprint(err) != "enough" {
			t.Errorf("a take that was cancelled: %v", err)
		}
		cancel()
		f.wait.Wait()
	})
}
