package core

import (
	"math"
	"strconv"
	"time"

	"github.com/quernmr/quern/wire"
)

// jobSpec is what was submitted of a job and when, and what its attempts may use.
type jobSpec struct {
	plan    *wire.JobPlan
	token   string        // see facts.Facts.Token
	arrived time.Duration // when it was submitted; before 0 if under an earlier leader
	timeout time.Duration // of its attempts
	limits  limits
}

// limits is what a job's attempts may use; 0 is any.
type limits struct {
	mapMemory    int64 // bytes
	reduceMemory int64
	processes    int
}

func (x limits) memory(k wire.Kind) int64 {
	switch k {
	case wire.Map:
		return x.mapMemory
	case wire.Reduce:
		return x.reduceMemory
	}
	return 0
}

func limitsOf(p *wire.JobPlan) limits {
	return limits{
		mapMemory:    property(p, "mapreduce.map.memory.mb", 0, math.MaxInt64>>20) << 20,
		reduceMemory: property(p, "mapreduce.reduce.memory.mb", 0, math.MaxInt64>>20) << 20,
		processes:    int(property(p, "quern.task.processes", 0, math.MaxInt32)),
	}
}

// timeoutOf reads how long an attempt may show no progress; 0 is for ever.
func timeoutOf(p *wire.JobPlan) time.Duration {
	return time.Duration(property(p, "mapreduce.task.timeout", 600_000, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// property reads a number from 0 to most. The client has checked it; what makes
// no sense all the same is the default.
func property(p *wire.JobPlan, name string, otherwise, most int64) int64 {
	n, err := strconv.ParseInt(p.Properties[name], 10, 64)
	if err != nil || n < 0 || n > most {
		return otherwise
	}
	return n
}
