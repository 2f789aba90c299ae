package core

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/wire"
)

// BenchmarkRareWork measures work of single Steps that grows with the numbers of jobs, trackers or
// running attempts. It must stay rare, or below 100 µs in a cluster of 1,000 trackers and 100 jobs.
func BenchmarkRareWork(b *testing.B) {
	for _, size := range []fleetSize{{1000, 100, 200, 1}, {1000, 1, 20_000, 1}} {
		f := newFleet(b, size, nil)
		for range 4000 {
			f.endNext()
		}
		l := f.core.leader
		t, j := l.fleet.byIndex[7], l.order[0]
		run := func(name string, work func(i int)) {
			b.Run(fmt.Sprintf("jobs=%d/%s", size.jobs, name), func(b *testing.B) {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				begin := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
				for i := range b.N {
					work(i)
				}
				b.ReportMetric(float64(cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)-begin)/float64(b.N)/1000, "cpu-µs/op")
			})
		}
		run("tick", func(int) { f.step(Tick{}) })
		run("usable trackers", func(int) { l.usableTrackers() })
		run("other trackers", func(int) { l.otherTrackers(t) })
		run("service changed", func(i int) {
			f.step(FromTracker{Stream: t.contact.stream, Message: &wire.Capacity{
				MapSlots: fleetSlots, ReduceSlots: 2, Unhealthy: map[bool]string{true: "hot"}[i%2 == 0],
			}})
		})
		run("stragglers", func(int) { l.stragglers(j, mapPhase) })
		run("spare sites", func(int) { l.spareSites(j, reducePhase) })
		run("forecast", func(int) { l.recentForecast(l.now, 0) })
		run("banned", func(i int) { l.assign.SetBanned(&j.assign, &t.assign, i%2 == 0) })
		run("outputs of a tracker", func(int) { l.findNeeded(t) })
	}
}
