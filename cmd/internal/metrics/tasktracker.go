package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quernmr/quern/cmd/internal/build"
	"github.com/quernmr/quern/tasktracker"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/gather"
)

// ofTaskTracker has the values of a task tracker's metrics.
type ofTaskTracker struct {
	tasktracker.Metrics
	responds bool
}

// TaskTracker collects the metrics of a task tracker.
func TaskTracker(read func(context.Context) (tasktracker.Metrics, error)) prometheus.Collector {
	return newCollector(taskTracker, func(ctx context.Context) ofTaskTracker {
		m, err := read(ctx)
		return ofTaskTracker{m, err == nil}
	})
}

// known reads values of a task tracker that responds.
func known(read func(*ofTaskTracker, *samples)) func(*ofTaskTracker, *samples) {
	return func(v *ofTaskTracker, to *samples) {
		if v.responds {
			read(v, to)
		}
	}
}

// now reads a value of the census.
func now(value func(*core.Census) int) func(*ofTaskTracker, *samples) {
	return known(func(v *ofTaskTracker, to *samples) { to.add(float64(value(&v.Census))) })
}

// taskTracker has the metrics of a task tracker.
var taskTracker = []family[ofTaskTracker]{
	{"quern_build_info", gauge, []string{"version"}, "1, with the version of this daemon.",
		func(_ *ofTaskTracker, to *samples) { to.add(1, build.Version()) }},
	{"quern_tasktracker_responding", gauge, nil, "1 if the task tracker's event loop has answered in time, else 0.",
		func(v *ofTaskTracker, to *samples) { to.is(v.responds) }},
	{"quern_tasktracker_registered", gauge, nil, "1 if the task tracker is registered with the leader, else 0.",
		known(func(v *ofTaskTracker, to *samples) { to.is(v.Registered) })},
	{"quern_tasktracker_healthy", gauge, nil, "0 if the machine is unhealthy, by its health script, else 1.",
		known(func(v *ofTaskTracker, to *samples) { to.is(v.Census.Healthy) })},
	{"quern_tasktracker_step_seconds", histogram, nil, "Time that the event loop takes for one event.",
		known(func(v *ofTaskTracker, to *samples) { to.times(v.Steps) })},
	{"quern_tasktracker_slots", gauge, []string{"phase"}, "Slots that this task tracker offers.",
		known(func(v *ofTaskTracker, to *samples) {
			for i := range phases {
				to.add(float64(v.Census.Slots[i]), phases[i])
			}
		})},
	{"quern_tasktracker_attempts_running", gauge, []string{"phase"}, "Attempts in slots.",
		known(func(v *ofTaskTracker, to *samples) {
			for i := range phases {
				to.add(float64(v.Census.Running[i]), phases[i])
			}
		})},
	{"quern_tasktracker_attempts_waiting", gauge, nil, "Attempts that were launched and wait for a slot that is not free yet.",
		now(func(c *core.Census) int { return c.Waiting })},
	{"quern_tasktracker_services_running", gauge, nil, "Setup, commit, cleanup and fence attempts that run.",
		now(func(c *core.Census) int { return c.Services })},
	{"quern_tasktracker_workers", gauge, nil, "Worker processes.",
		now(func(c *core.Census) int { return c.Workers })},
	{"quern_tasktracker_workers_idle", gauge, nil, "Worker processes that wait for another attempt of their jobs.",
		now(func(c *core.Census) int { return c.Idle })},
	{"quern_tasktracker_worker_start_seconds", histogram, nil, "Time from the start of a worker process to its first message.",
		known(func(v *ofTaskTracker, to *samples) { to.times(v.Starts) })},
	{"quern_tasktracker_disks", gauge, nil, "Disks of this task tracker.",
		now(func(c *core.Census) int { return c.Disks })},
	{"quern_tasktracker_disks_bad", gauge, nil, "Disks that are not used, since they have failed.",
		now(func(c *core.Census) int { return c.BadDisks })},

	{"quern_shuffle_homes", gauge, nil, "Partitions that are gathered here.",
		now(func(c *core.Census) int { return c.Homes })},
	{"quern_shuffle_fetches_running", gauge, nil, "Fetches of map outputs from other task trackers that run.",
		now(func(c *core.Census) int { return c.Fetching })},
	{"quern_shuffle_fetches_total", counter, []string{"result"}, "Fetches of map outputs from other task trackers that have ended. A batch of small partitions counts once.",
		known(func(v *ofTaskTracker, to *samples) {
			for r := range gather.Results {
				to.count(&v.Gathered.Fetches[r], r.String())
			}
		})},
	{"quern_shuffle_fetched_bytes_total", counter, nil, "Bytes of the fetches that have succeeded.",
		known(func(v *ofTaskTracker, to *samples) { to.count(&v.Gathered.Bytes) })},
	{"quern_shuffle_fetch_seconds", histogram, nil, "Times of the fetches that have succeeded.",
		known(func(v *ofTaskTracker, to *samples) { to.times(v.Gathered.Times) })},
	{"quern_shuffle_served_bytes_total", counter, nil, "Bytes of map outputs that other task trackers have fetched from this one.",
		known(func(v *ofTaskTracker, to *samples) { to.count(v.Served) })},
}
