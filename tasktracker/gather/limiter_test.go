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

// fetchers simulates fetches that wait only for the limiter.
type fetchers struct {
	limiter  *rateLimiter
	ctx      context.Context
	mu       sync.Mutex
	received map[int]float64 // bytes, by job
	wait     sync.WaitGroup
}

// begin starts fetches of a job. Each waits for some bytes at a time, until the job has
// received the limit.
func (f *fetchers) begin(job, fetches, bytes int, limit float64) {
	ctx := f.ctx
	for range fetches {
		f.wait.Go(func() {
			for f.add(job, 0) < limit && f.limiter.wait(ctx, jobN(job), bytes) == nil {
				f.add(job, bytes)
			}
		})
	}
}

func (f *fetchers) add(job, bytes int) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.received[job] += float64(bytes)
	return f.received[job]
}

// ratesDuring lets virtual time pass, and returns the rates of jobs in that time, in
// thousands of bytes a second.
func (f *fetchers) ratesDuring(d time.Duration) map[int]float64 {
	f.mu.Lock()
	clear(f.received)
	f.mu.Unlock()
	<-time.After(d)
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	rates := make(map[int]float64)
	for job, bytes := range f.received {
		rates[job] = bytes / 1000 / d.Seconds()
	}
	return rates
}

// TestRates shares a rate of a million bytes a second among jobs.
func TestRates(t *testing.T) {
	const all = 1e300
	for _, c := range []struct {
		name   string
		shares []wire.JobShare
		begin  func(f *fetchers)
		want   map[int]float64
	}{
		{"one job", nil, func(f *fetchers) { f.begin(1, 8, 32<<10, all) }, map[int]float64{1: 1000}},
		{"equal, for any number of fetches", nil, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 1, 4<<10, all)
		}, map[int]float64{1: 500, 2: 500}},
		{"the first job gets all", []wire.JobShare{{Job: jobN(2), Share: 1}, {Job: jobN(1), Share: 0}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 2, 32<<10, all)
			f.begin(3, 2, 32<<10, all)
		}, map[int]float64{2: 1000}},
		{"up to its share", []wire.JobShare{{Job: jobN(2), Share: 0.7}, {Job: jobN(1), Share: 0.3}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 2, 8<<10, all)
		}, map[int]float64{1: 300, 2: 700}},
		{"then jobs without a share", []wire.JobShare{{Job: jobN(2), Share: 0.25}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 2, 8<<10, all)
			f.begin(3, 1, 8<<10, all)
		}, map[int]float64{1: 375, 2: 250, 3: 375}},
		{"unused shares", []wire.JobShare{{Job: jobN(9), Share: 0.5}, {Job: jobN(2), Share: 0.25}, {Job: jobN(1), Share: 0.1}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 2, 8<<10, all)
		}, map[int]float64{1: 100, 2: 900}},
		{"a job that ends", []wire.JobShare{{Job: jobN(2), Share: 1}}, func(f *fetchers) {
			f.begin(1, 8, 32<<10, all)
			f.begin(2, 1, 10000, 2e6)
		}, map[int]float64{1: 800, 2: 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				f := &fetchers{limiter: newRateLimiter(1e6), ctx: ctx, received: make(map[int]float64)}
				f.limiter.share(c.shares)
				c.begin(f)
				got := f.ratesDuring(10 * time.Second)
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

// TestChangedShares: new shares hold for waiting fetches too. A cancelled fetch gets no
// share.
func TestChangedShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &fetchers{limiter: newRateLimiter(1e6), ctx: ctx, received: make(map[int]float64)}
		f.begin(1, 4, 32<<10, 1e300)
		other, stop := context.WithCancelCause(t.Context())
		f.ctx = other // for later fetches
		f.begin(2, 4, 32<<10, 1e300)
		steps := []struct {
			do    func()
			first int
		}{
			{func() { f.limiter.share([]wire.JobShare{{Job: jobN(1), Share: 1}}) }, 1},
			{func() { f.limiter.share([]wire.JobShare{{Job: jobN(2), Share: 1}, {Job: jobN(1), Share: 0}}) }, 2},
			{func() { stop(errors.New("enough")) }, 1},
		}
		for i, s := range steps {
			s.do()
			if got := f.ratesDuring(5 * time.Second); got[s.first] < 970 || len(got) != 1 && got[3-s.first] > 30 {
				t.Errorf("step %d: %v", i, got)
			}
		}
		if err := f.limiter.wait(other, jobN(2), 1<<20); fmt.Sprint(err) != "enough" {
			t.Errorf("a cancelled wait: %v", err)
		}
		cancel()
		f.wait.Wait()
	})
}
