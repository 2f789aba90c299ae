package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkOpenPages measures which part of a processor the leader spends on 50 open pages, beyond what it
// spends on ten running jobs. Clients load pages as often as live.js does while jobs change all the time:
//
//	cd integration/browser && go test -run '^$' -bench OpenPages -benchtime 1x .
func BenchmarkOpenPages(b *testing.B) {
	const (
		open  = 50
		round = 40 * time.Second
	)
	w, err := begin(b.TempDir(), 1, 2)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	defer w.end()
	input := w.input(b, "in", 100, 100, 100, 100, 100, 100)
	first := ""
	for i := range 10 {
		name := fmt.Sprint("job", i)
		run := w.submit(b, name, input, "--", "-shape", name, "-record-time", "200ms")
		if first == "" {
			first = w.awaitJob(b, run, name, "running")
		}
	}
	address := w.ui(b)
	base := address[:strings.Index(address, "/?")]
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	if _, _, err := read(b.Context(), client, address); err != nil {
		b.Fatal(err)
	}
	spend := func() float64 {
		before := w.JobTrackers[0].Processor()
		time.Sleep(round) // measures
		return (w.JobTrackers[0].Processor() - before) / round.Seconds()
	}
	for b.Loop() {
		idle := spend()
		ctx, stop := context.WithCancel(b.Context())
		var clients sync.WaitGroup
		var loads sync.Map
		for i := range open {
			path := []string{"/", "/jobs", "/jobs/" + first, "/scheduler", "/jobs/" + first + "/attempts"}[i%5]
			clients.Go(func() { read(ctx, client, base+"/v1/events?state=running") })
			clients.Go(func() {
				n := 0
				defer func() { loads.Store(i, n) }()
				for ; ctx.Err() == nil; n++ {
					head, _, err := read(ctx, client, base+path)
					if err != nil && ctx.Err() == nil {
						b.Errorf("%s: %v", path, err)
						return
					}
					after, _ := strconv.Atoi(head.Get("Reload-After"))
					select {
					case <-ctx.Done():
					case <-time.After(max(2*time.Second, time.Duration(after)*time.Millisecond)):
					}
				}
			})
		}
		time.Sleep(round) // until the pace fits the load
		busy := spend()
		stop()
		clients.Wait()
		total := 0
		loads.Range(func(_, n any) bool { total += n.(int); return true })
		b.ReportMetric(100*idle, "%idle")
		b.ReportMetric(100*(busy-idle), "%pages")
		b.ReportMetric(float64(total)/(2*round.Seconds()), "loads/s")
	}
}

// read gets an address, to the end of the answer.
func read(ctx context.Context, client *http.Client, address string) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", answer.Status, body)
	}
	return answer.Header, body, err
}
