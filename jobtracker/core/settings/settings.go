// Package settings reads the properties of a job that the job tracker obeys. [Of] reads them all,
// once for each job. The core uses the fields of [Settings] and reads no property by name. A new
// property needs one field in Settings and one line in Of.
//
// The client has checked the properties (mapreduce.Properties). An invalid value still means the
// default here: a job tracker must obey every submission in its log.
package settings

import (
	"math"
	"strconv"
	"time"

	"github.com/quernmr/quern/jobtracker/core/health"
	"github.com/quernmr/quern/jobtracker/core/speculation"
	"github.com/quernmr/quern/wire"
)

// Settings holds a job's properties that the job tracker obeys.
type Settings struct {
	Timeout       time.Duration // longest time without progress of an attempt; 0: no limit
	MaxProcesses  int           // most processes of an attempt at a time; 0: no limit
	MaxLocalBytes int64         // most bytes in the working directory of an attempt; 0: no limit
	Maps, Reduces TaskSettings
	SkipStart     int // failed attempts of a task after which it skips records
	CounterLimits wire.CounterLimits
	TrackerLimits health.JobLimits // on its failures by tracker

	// Classical is Hadoop's way: a reduce holds a slot while it gathers its partition. It
	// starts when the fraction Slowstart of the maps has ended.
	Classical bool
	Slowstart float64 // from 0 to 1

	Speculation speculation.Rules // for tasks with TaskSettings.Speculative
}

// TaskSettings holds for all tasks of one kind in a job.
type TaskSettings struct {
	MaxAttempts int   // failed attempts of a task after which it has failed for good
	MaxMemory   int64 // bytes for all processes of an attempt, and of its tracker's offer; 0: no limit, none
	Cores       int   // of its tracker's offer
	MaxGivenUp  int   // percentage of the tasks that may fail for good while the job succeeds
	MaxSkip     int64 // records or groups that may be skipped around a bad one; 0: none is skipped
	Speculative bool  // slow tasks get a second attempt
}

// ServiceAttempts is MaxAttempts of tasks without a slot, such as setup and cleanup. No property
// changes it.
const ServiceAttempts = 4

// Of reads a job's properties.
func Of(plan *wire.JobPlan) Settings {
	p := properties(plan.Properties)
	return Settings{
		Timeout:       time.Duration(p.number("mapreduce.task.timeout", 600_000, 0, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond,
		MaxProcesses:  int(p.number("quern.task.processes", 0, 0, math.MaxInt32)),
		MaxLocalBytes: max(p.number(wire.LocalBytesProperty, -1, -1, math.MaxInt64), 0),
		Maps:          p.tasks("map", "maxrecords"),
		Reduces:       p.tasks("reduce", "maxgroups"),
		SkipStart:     int(p.number("mapreduce.task.skip.start.attempts", 2, 1, math.MaxInt32)),
		CounterLimits: wire.CounterLimitsOf(plan.Properties),
		TrackerLimits: health.JobLimits{
			MaxFailures: int(p.number("mapreduce.job.maxtaskfailures.per.tracker", 3, 1, math.MaxInt32)),
			MaxPercent:  int(p.number("yarn.app.mapreduce.am.job.node-blacklisting.ignore-threshold-node-percent", 33, -1, 100)),
		},
		Classical: !p.flag("quern.shuffle.split", true),
		Slowstart: p.fraction("mapreduce.job.reduce.slowstart.completedmaps", 0.05),
		Speculation: speculation.Rules{
			Threshold:    p.real("mapreduce.job.speculative.slowtaskthreshold", speculation.DefaultRules.Threshold),
			RunningShare: p.fraction("mapreduce.job.speculative.speculative-cap-running-tasks", speculation.DefaultRules.RunningShare),
			TotalShare:   p.fraction("mapreduce.job.speculative.speculative-cap-total-tasks", speculation.DefaultRules.TotalShare),
			AtLeast:      int(p.number("mapreduce.job.speculative.minimum-allowed-tasks", int64(speculation.DefaultRules.AtLeast), 0, math.MaxInt32)),
		},
	}
}

// ForKind returns the settings of tasks of this kind. Tasks without a slot have no memory limit.
func (s *Settings) ForKind(k wire.Kind) TaskSettings {
	switch k {
	case wire.Map:
		return s.Maps
	case wire.Reduce:
		return s.Reduces
	}
	return TaskSettings{MaxAttempts: ServiceAttempts, Speculative: s.Maps.Speculative || s.Reduces.Speculative}
}

type properties map[string]string

// number reads an integer from lowest to highest.
func (p properties) number(name string, fallback, lowest, highest int64) int64 {
	n, err := strconv.ParseInt(p[name], 10, 64)
	if err != nil || n < lowest || n > highest {
		return fallback
	}
	return n
}

func (p properties) mebibytes(name string) int64 {
	return p.number(name, 0, 0, math.MaxInt64>>20) << 20
}

// tasks reads the settings of a kind of tasks. skipped is what they skip, as in a property.
func (p properties) tasks(kind, skipped string) TaskSettings {
	return TaskSettings{
		MaxAttempts: p.attempts("mapreduce." + kind + ".maxattempts"),
		MaxMemory:   p.mebibytes("mapreduce." + kind + ".memory.mb"),
		Cores:       int(p.number("mapreduce."+kind+".cpu.vcores", 0, 0, math.MaxInt32)),
		MaxGivenUp:  int(p.number("mapreduce."+kind+".failures.maxpercent", 0, 0, 100)),
		MaxSkip:     p.number("mapreduce."+kind+".skip."+skipped, 0, 0, math.MaxInt64),
		Speculative: p.flag("mapreduce."+kind+".speculative", true),
	}
}

// attempts reads MaxAttempts. One leader can number at most EpochAttempts attempts of a task.
func (p properties) attempts(name string) int {
	return int(min(p.number(name, 4, 1, math.MaxInt), wire.EpochAttempts-1))
}

func (p properties) flag(name string, fallback bool) bool {
	value, err := strconv.ParseBool(p[name])
	if err != nil {
		return fallback
	}
	return value
}

// maxReal is the largest number that real reads.
const maxReal = 1000

// real reads a number that is not negative.
func (p properties) real(name string, fallback float64) float64 {
	x, err := strconv.ParseFloat(p[name], 64)
	if err != nil || !(x >= 0 && x <= maxReal) {
		return fallback
	}
	return x
}

// fraction reads a number from 0 to 1.
func (p properties) fraction(name string, fallback float64) float64 {
	if x := p.real(name, fallback); x <= 1 {
		return x
	}
	return fallback
}
