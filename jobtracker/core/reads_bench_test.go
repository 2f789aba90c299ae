package core

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// BenchmarkReads measures the reads of the core that web pages cause, with 10,000 jobs that have not ended, 1,000 task
// trackers and a job of 100,000 maps. As in BenchmarkSteps, the longest counts; it is processor time.
func BenchmarkReads(b *testing.B) {
	const maps = 100_000
	c := newLargeCluster(largeTrackers, largeJobs, 0)
	c.commit(
		&facts.Submitted{Submission: wire.Submission{Key: "large", Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n", Reduces: 1}}}}},
		&facts.SplitsWritten{Job: largeJobs + 1, Maps: maps},
	)
	large := c.core.facts.ID(largeJobs + 1)
	for _, r := range []struct {
		name string
		read func() error
	}{
		{"cluster", func() error { c.core.ClusterView(c.now); return nil }},
		{"jobs", func() error { _, _, err := c.core.Statuses(c.now, Query{}); return err }},
		{"jobs by a name that no job has", func() error {
			q := Query{}
			q.Filter.Name = "*other*"
			_, _, err := c.core.Statuses(c.now, q)
			return err
		}},
		{"job", func() error { c.core.StatusAt(c.now, large); return nil }},
		{"attempts", func() error { _, _, err := c.core.Attempts(large, wire.AttemptID{}); return err }},
		{"explanation", func() error { c.core.Explain(c.now, large); return nil }},
		{"explanations", func() error { _, _, err := c.core.Explanations(c.now, wire.JobID{}); return err }},
		{"past plans", func() error { c.core.PastPlans(); return nil }},
		{"recent attempts", func() error { c.step(TakeRecent{Token: 1}); return nil }},
	} {
		b.Run(r.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var times []time.Duration
			for b.Loop() {
				began := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
				if err := r.read(); err != nil {
					b.Fatal(err)
				}
				times = append(times, cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)-began)
			}
			slices.Sort(times)
			b.ReportMetric(times[len(times)/2].Seconds()*1000, "median-cpu-ms")
			b.ReportMetric(times[len(times)-1].Seconds()*1000, "longest-cpu-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}
