package metrics

import (
	"cmp"
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quernmr/quern/cmd/internal/build"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core/census"
	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

// Log is the replicated log of a job tracker.
type Log interface {
	Stored() (entries, bytes int64)
	CommitTimes() *meter.Histogram
	VoterCount() int
}

// ofJobTracker has the values of a job tracker's metrics.
type ofJobTracker struct {
	jobtracker.Metrics
	responds       bool
	log            Log
	entries, bytes int64
}

// JobTracker collects the metrics of a job tracker.
func JobTracker(read func(context.Context) (jobtracker.Metrics, error), log Log) prometheus.Collector {
	return newCollector(jobTracker, func(ctx context.Context) ofJobTracker {
		m, err := read(ctx)
		v := ofJobTracker{Metrics: m, responds: err == nil, log: log}
		v.entries, v.bytes = log.Stored()
		return v
	})
}

var phases = [census.Phases]string{"map", "reduce"}

// phaseValues reads a value of each phase from the census.
func phaseValues(value func(*census.Phase) int) func(*ofJobTracker, *samples) {
	return func(v *ofJobTracker, to *samples) {
		for i := range phases {
			if v.Census != nil {
				to.add(float64(value(&v.Census.Phases[i])), phases[i])
			}
		}
	}
}

// censusValue reads a value from the census.
func censusValue(value func(*census.Census) float64) func(*ofJobTracker, *samples) {
	return func(v *ofJobTracker, to *samples) {
		if v.Census != nil {
			to.add(value(v.Census))
		}
	}
}

// jobTracker has the metrics of a job tracker.
var jobTracker = []family[ofJobTracker]{
	{"quern_build_info", gauge, []string{"version"}, "1, with the version of this daemon.",
		func(_ *ofJobTracker, to *samples) { to.add(1, build.Version()) }},
	{"quern_jobtracker_leader", gauge, nil, "1 if this job tracker is the leader, else 0.",
		func(v *ofJobTracker, to *samples) { to.is(v.Leads) }},
	{"quern_jobtracker_responding", gauge, nil, "1 if the job tracker's event loop has answered in time, else 0.",
		func(v *ofJobTracker, to *samples) { to.is(v.responds) }},
	{"quern_jobtracker_step_seconds", histogram, nil, "Time that the event loop takes for one event. All messages wait for it.",
		func(v *ofJobTracker, to *samples) { to.times(v.Steps) }},
	{"quern_jobtracker_message_wait_seconds", histogram, nil, "Time from the arrival of a task tracker's message until the leader handles it.",
		func(v *ofJobTracker, to *samples) { to.times(v.Waits) }},
	{"quern_plan_seconds", histogram, nil, "Time that the scheduler takes for a plan.",
		func(v *ofJobTracker, to *samples) { to.times(v.Plans) }},
	{"quern_plan_failures_total", counter, nil, "Plans that the scheduler could not make, or not in time.",
		func(v *ofJobTracker, to *samples) { to.count(v.FailedPlans) }},

	{"quern_log_commit_seconds", histogram, nil, "Time from the proposal of a log entry until most job trackers have stored it.",
		func(v *ofJobTracker, to *samples) { to.times(v.log.CommitTimes()) }},
	{"quern_log_entries_total", counter, nil, "Log entries that this job tracker has stored.",
		func(v *ofJobTracker, to *samples) { to.add(float64(v.entries)) }},
	{"quern_log_written_bytes_total", counter, nil, "Bytes of these entries.",
		func(v *ofJobTracker, to *samples) { to.add(float64(v.bytes)) }},
	{"quern_log_voters", gauge, nil, "Job trackers that vote, as this one knows.",
		func(v *ofJobTracker, to *samples) { to.add(float64(v.log.VoterCount())) }},

	{"quern_jobs", gauge, []string{"state"}, "Jobs that have not ended.",
		func(v *ofJobTracker, to *samples) {
			for state := wire.Waiting; v.Census != nil && state <= wire.Stopping; state++ {
				to.add(float64(v.Census.Jobs[state]), state.String())
			}
		}},
	{"quern_jobs_suspended", gauge, nil, "Jobs that are suspended.",
		censusValue(func(c *census.Census) float64 { return float64(c.Suspended) })},
	{"quern_jobs_late", gauge, nil, "Jobs that are predicted to end after their deadlines.",
		censusValue(func(c *census.Census) float64 { return float64(c.Late) })},
	{"quern_jobs_oldest_unstarted_age_seconds", gauge, nil, "Age of the oldest job without any launched map or reduce; 0 if there is none.",
		censusValue(func(c *census.Census) float64 { return c.Unstarted.Seconds() })},
	{"quern_jobs_submitted_total", counter, nil, "Jobs that the leader has accepted.",
		func(v *ofJobTracker, to *samples) { to.count(&v.Counts.Submitted) }},
	{"quern_jobs_ended_total", counter, []string{"state"}, "Jobs that have ended.",
		func(v *ofJobTracker, to *samples) {
			for state := wire.Succeeded; state <= wire.Killed; state++ {
				to.count(&v.Counts.Ended[state], state.String())
			}
		}},
	{"quern_job_queue_seconds", histogram, nil, "Time from a job's submission to the launch of its first map or reduce.",
		func(v *ofJobTracker, to *samples) { to.times(v.Counts.QueueTime) }},
	{"quern_forecast_error_ratio", histogram, nil, "Difference between predicted and real end of jobs that have succeeded, as a part of the job's time. The prediction is from the first half of this time; jobs without one do not count.",
		func(v *ofJobTracker, to *samples) { to.distribution(v.Counts.ForecastErrors, census.WholeLife) }},

	{"quern_tasks_pending", gauge, []string{"phase"}, "Maps and reduces that may run and wait for a slot.",
		phaseValues(func(p *census.Phase) int { return p.Pending })},
	{"quern_slots", gauge, []string{"phase"}, "Slots of the task trackers in service.",
		phaseValues(func(p *census.Phase) int { return p.Slots })},
	{"quern_slots_used", gauge, []string{"phase"}, "Slots in use.",
		phaseValues(func(p *census.Phase) int { return p.Used })},
	{"quern_task_seconds", histogram, []string{"phase"}, "Times of maps and reduces that have succeeded.",
		func(v *ofJobTracker, to *samples) {
			for i := range phases {
				to.times(v.Counts.TaskTimes[i], phases[i])
			}
		}},
	{"quern_attempts_ended_total", counter, []string{"kind", "outcome"}, "Attempts that have ended.",
		func(v *ofJobTracker, to *samples) {
			for k := wire.Setup; k <= wire.Fence; k++ {
				for o := range census.Outcomes {
					to.count(&v.Counts.Attempts[k][o], k.String(), o.String())
				}
			}
		}},
	{"quern_attempts_second_total", counter, []string{"phase"}, "Attempts that were launched beside a slow one.",
		func(v *ofJobTracker, to *samples) {
			for i := range phases {
				to.count(&v.Counts.Second[i], phases[i])
			}
		}},
	{"quern_attempts_preempted_total", counter, nil, "Attempts that were killed for pools that starve.",
		func(v *ofJobTracker, to *samples) { to.count(&v.Counts.Preempted) }},
	{"quern_maps_launched_total", counter, []string{"locality"}, "Maps that were launched, by the distance to their input.",
		func(v *ofJobTracker, to *samples) {
			for l := range v.Counts.Levels {
				to.count(&v.Counts.Levels[l], cmp.Or(wire.Level(l).String(), "unknown"))
			}
		}},

	{"quern_tasktrackers", gauge, nil, "Task trackers that are registered.",
		censusValue(func(c *census.Census) float64 { return float64(c.Trackers.Registered) })},
	{"quern_tasktrackers_usable", gauge, nil, "Task trackers that get new attempts.",
		censusValue(func(c *census.Census) float64 { return float64(c.Trackers.Usable) })},
	{"quern_tasktrackers_excluded", gauge, nil, "Task trackers that the leader or an operator excludes.",
		censusValue(func(c *census.Census) float64 { return float64(c.Trackers.Excluded) })},
	{"quern_tasktrackers_draining", gauge, nil, "Task trackers that are drained.",
		censusValue(func(c *census.Census) float64 { return float64(c.Trackers.Draining) })},
	{"quern_tasktrackers_unhealthy", gauge, nil, "Task trackers on machines that are unhealthy, by their health scripts.",
		censusValue(func(c *census.Census) float64 { return float64(c.Trackers.Unhealthy) })},
	{"quern_tasktrackers_on_probation", gauge, nil, "Task trackers that run one attempt at a time after an exclusion.",
		censusValue(func(c *census.Census) float64 { return float64(c.Trackers.Probation) })},
	{"quern_tasktrackers_lost_total", counter, nil, "Losses of task trackers.",
		func(v *ofJobTracker, to *samples) { to.count(&v.Counts.Lost) }},
	{"quern_tasktrackers_excluded_total", counter, nil, "Exclusions of task trackers by the leader.",
		func(v *ofJobTracker, to *samples) { to.count(&v.Counts.Excluded) }},
}
