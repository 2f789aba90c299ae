// Package pages measures the web pages of a large cluster: the time of each page, the part of a processor that 50 open
// pages cost, and how long they stop the job tracker's loop. All is in one process, without connections: a job tracker
// with 1,000 ended jobs in memory, 10,000 histories and a job of 100,000 tasks, and 1,000 task trackers.
package pages

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/meter"
)

// open is the number of open pages, and round how long they are measured.
const (
	open  = 50
	round = 30 * time.Second
)

type bench struct {
	*testbed.Bench
	*cluster
}

// Section declares the parts.
func Section() testbed.Section {
	b := new(bench)
	return testbed.Section{
		Name: "pages", About: "web pages of a large cluster: their times, and what open pages cost the job tracker",
		Runs: 20,
		Open: func(base *testbed.Bench) (err error) {
			b.Bench = base
			b.cluster, err = begin(base.Ctx)
			b.AtEnd(func() error { b.close(); return nil })
			return err
		},
		Parts: []testbed.Part{
			{Name: "times", Columns: []string{"page", "bytes", "median", "longest", "target"}, Measure: b.times},
			{Name: "open", Columns: []string{"viewers", "loads a second", "pause", "without pages", "pages", "target", "longest Step without pages", "with pages"}, Measure: b.open},
		},
	}
}

func (b *bench) paths() []string {
	job := "/jobs/" + b.large.String()
	return []string{"/", "/jobs", job, "/scheduler", job + "/attempts"}
}

func (b *bench) times() error {
	for _, path := range append(b.paths(), "/trackers", "/history", "/history?name=words&state=failed", "/scheduler/whatif") {
		var took []time.Duration
		size := 0
		for range b.Runs {
			began := time.Now()
			w, err := b.load(b.Ctx, "ann", path, 0, "")
			if err != nil {
				return err
			}
			took, size = append(took, time.Since(began)), w.Body.Len()
		}
		slices.Sort(took)
		testbed.Row(path, fmt.Sprint(size), millis(took[len(took)/2]), millis(took[len(took)-1]), "≤ 200 ms")
	}
	return nil
}

// load gets a page as a user, who accepts one of this age.
func (b *bench) load(ctx context.Context, user, path string, age time.Duration, encoding string) (*httptest.ResponseRecorder, error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{URIs: []*url.URL{{Scheme: "quern", Host: "client", Path: "/" + user}}}}}
	r.Header.Set("Accept-Encoding", encoding)
	r.Header.Set("Cache-Control", fmt.Sprintf("max-age=%.0f", age.Seconds()))
	w := httptest.NewRecorder()
	b.pages.ServeHTTP(w, r)
	if w.Code != http.StatusOK && ctx.Err() == nil {
		return nil, fmt.Errorf("page %s: status %d: %s", path, w.Code, w.Body)
	}
	return w, nil
}

func (b *bench) open() error {
	for _, c := range []struct {
		name string
		user func(i int) string
	}{{"one user", func(int) string { return "ann" }}, {"50 users", func(i int) string { return fmt.Sprint("user", i) }}} {
		ctx, stop := context.WithCancel(b.Ctx)
		v := &viewers{b: b, user: c.user}
		for i := range open {
			v.all.Go(func() { v.view(ctx, i) })
		}
		_, _, err := b.spend() // until the pause fits the cost
		v.mu.Lock()
		v.loads = 0
		v.mu.Unlock()
		busy, step, busyErr := b.spend()
		stop()
		v.all.Wait()
		idle, idleStep, idleErr := b.spend()
		if err = errors.Join(err, busyErr, idleErr, v.err); err != nil {
			return err
		}
		testbed.Row(c.name, fmt.Sprintf("%.1f", float64(v.loads)/round.Seconds()), v.pause.String(), percent(idle), percent(busy-idle), "≤ 3 %", "≤ "+millis(idleStep), "≤ "+millis(step))
	}
	return nil
}

// viewers load pages again as live.js does while jobs change all the time.
type viewers struct {
	b    *bench
	user func(i int) string
	all  sync.WaitGroup

	mu    sync.Mutex
	loads int
	pause time.Duration
	err   error
}

func (v *viewers) view(ctx context.Context, i int) {
	paths := v.b.paths()
	age := time.Duration(0)
	for ctx.Err() == nil {
		w, err := v.b.load(ctx, v.user(i), paths[i%len(paths)], age, "gzip")
		if err != nil {
			v.mu.Lock()
			v.err = err
			v.mu.Unlock()
			return
		}
		after, _ := strconv.Atoi(w.Header().Get("Reload-After")) // none: the context has ended
		pause := max(2*time.Second, time.Duration(after)*time.Millisecond)
		v.mu.Lock()
		v.loads, v.pause = v.loads+1, pause
		v.mu.Unlock()
		age = (pause / 2).Truncate(time.Second)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// spend returns the part of a processor that this process takes in a round, and an upper bound of the loop's longest Step.
func (b *bench) spend() (part float64, longest time.Duration, err error) {
	steps := b.steps
	before, counted := processor(), steps.Distribution()
	select { // measures
	case <-b.Ctx.Done():
		return 0, 0, b.Ctx.Err()
	case <-time.After(round):
	}
	return (processor() - before).Seconds() / round.Seconds(), longestOf(counted, steps.Distribution()), nil
}

// longestOf is the bound of the highest bucket that has grown.
func longestOf(before, now meter.Distribution) (longest time.Duration) {
	for i := range now.Counts {
		if now.Counts[i] > before.Counts[i] {
			longest = time.Duration(now.Bounds[min(i, len(now.Bounds)-1)])
		}
	}
	return longest
}

// processor is the processor time of this process.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // only a wrong argument fails
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
