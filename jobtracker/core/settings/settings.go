// Package settings says what a job's properties mean to the job tracker. [Of] reads them at
// one place, once for each job; the core obeys the fields of [Settings] and reads no
// property by name. A new property that the job tracker obeys is one field of Settings and
// one line in Of.
//
// The client has checked the properties (mapreduce.Properties). A value that makes no sense
// all the same is read as the default: a job tracker must obey every submission that is in
// its log.
package settings

import (
	"math"
	"strconv"
	"time"

	"github.com/quernmr/quern/wire"
)

// Settings holds a job's properties that the job tracker obeys.
type Settings struct {
	Timeout       time.Duration // how long an attempt may show no progress; 0: for ever
	MaxProcesses  int           // that an attempt may have at a time; 0: any
	Maps, Reduces TaskSettings
	CounterLimits wire.CounterLimits

	// Classical is what Hadoop does: a reduce has a slot while its partition is gathered,
	// from when the part Slowstart of the maps has ended.
	Classical bool
	Slowstart float64 // from 0 to 1
}

// Tasks is what holds for a job's tasks of one kind.
type TaskSettings struct {
	MaxAttempts int   // of a task that may fail
	MaxMemory   int64 // bytes that the processes of an attempt may have; 0: any
}

// ServiceAttempts is how often a task without a slot, or an effect, is tried. No property
// changes it.
const ServiceAttempts = 4

// Of reads a job's properties.
func Of(plan *wire.JobPlan) Settings {
	p := properties(plan.Properties)
	return Settings{
		Timeout:       time.Duration(p.number("mapreduce.task.timeout", 600_000, 0, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond,
		MaxProcesses:  int(p.number("quern.task.processes", 0, 0, math.MaxInt32)),
		Maps:          TaskSettings{MaxAttempts: p.attempts("mapreduce.map.maxattempts"), MaxMemory: p.mebibytes("mapreduce.map.memory.mb")},
		Reduces:       TaskSettings{MaxAttempts: p.attempts("mapreduce.reduce.maxattempts"), MaxMemory: p.mebibytes("mapreduce.reduce.memory.mb")},
		CounterLimits: wire.CounterLimitsOf(plan.Properties),
		Classical:     !p.flag("quern.shuffle.split", true),
		Slowstart:     p.fraction("mapreduce.job.reduce.slowstart.completedmaps", 0.05),
	}
}

// Tasks is what holds for tasks of a kind. Those without slots have no limit of memory.
func (s *Settings) ForKind(k wire.Kind) TaskSettings {
	switch k {
	case wire.Map:
		return s.Maps
	case wire.Reduce:
		return s.Reduces
	}
	return TaskSettings{MaxAttempts: ServiceAttempts}
}

type properties map[string]string

// number reads a number from low to most.
func (p properties) number(name string, otherwise, low, most int64) int64 {
	n, err := strconv.ParseInt(p[name], 10, 64)
	if err != nil || n < low || n > most {
		return otherwise
	}
	return n
}

func (p properties) mebibytes(name string) int64 {
	return p.number(name, 0, 0, math.MaxInt64>>20) << 20
}

// attempts reads how many attempts of a task may fail. One leader can number only so many.
func (p properties) attempts(name string) int {
	return int(min(p.number(name, 4, 1, math.MaxInt), wire.EpochAttempts-1))
}

func (p properties) flag(name string, otherwise bool) bool {
	is, err := strconv.ParseBool(p[name])
	if err != nil {
		return otherwise
	}
	return is
}

// fraction reads a number from 0 to 1.
func (p properties) fraction(name string, otherwise float64) float64 {
	x, err := strconv.ParseFloat(p[name], 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return otherwise
	}
	return x
}
