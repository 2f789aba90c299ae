package runtime

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	counts "github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// TestTimesOfReduce: the time of a reduce has parts: the read of its partition, and the completion of its
// output with the wait for the grant. A clock passes only in the server, in the reduce, and before the grant.
func TestTimesOfReduce(t *testing.T) {
	var seconds atomic.Int64
	plan := linesPlan()
	plan.Reduces, plan.Properties = 1, nil
	b := newTrackerSim(t, plan, wordCount())
	b.stop()
	b.clock = func() time.Time { return time.Unix(seconds.Load(), 0) }
	b.onGrant = func() { seconds.Add(100) }
	reduce := b.jobs[0].Reduce
	b.jobs[0].Reduce = func(t *Task, in Records) error {
		seconds.Add(10)
		return reduce(t, in)
	}
	b.start()
	b.mustRun(wire.Setup, 0, nil)
	b.mustRun(wire.Map, 0, nil)
	file := filepath.Join(b.dir, strconv.Itoa(b.attempts), mapOutputName)
	id := testAttempt(wire.Map, 0, b.attempts)
	serve := shuffle.Handler(func(wire.JobID, int, int) (string, error) { return file, nil }, new(counts.Count))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seconds.Add(1)
		serve.ServeHTTP(w, r)
	}))
	defer server.Close()
	r := b.mustRun(wire.Reduce, 0, func(run *wire.Run) {
		run.Runs = []wire.Segment{{Map: 0, Attempt: id.N, URL: shuffle.URL(server.URL, id.Task.Job, 0, id.N, 0)}}
	})
	if r.Shuffled != time.Second || r.Completed != 100*time.Second {
		t.Errorf("the reduce has read for %v and completed its output for %v, want 1s and 1m40s", r.Shuffled, r.Completed)
	}
}
