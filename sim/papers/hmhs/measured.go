package hmhs

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/hmhs"
	"github.com/quernmr/quern/wire"
)

// scatter is the log-sigma of the times of a job's tasks on one machine.
const scatter = 0.2

// stageOf selects the maps of a job, or its reduces.
type stageOf func(*hmhs.Job) *hmhs.Stage

// measuredGain returns the gain against FIFO of HMHS with partial knowledge. HMHS knows the
// normal times of each job, as from history, and some tasks on a share of the pairs of job and
// machine. The planned queues run on the true batch.
func measuredGain(truth *hmhs.Batch, share float64, tasks int, r *rand.Rand) (float64, error) {
	estimated := &hmhs.Batch{Maps: truth.Maps, Reduces: truth.Reduces, Jobs: slices.Clone(truth.Jobs)}
	for _, stage := range []stageOf{
		func(j *hmhs.Job) *hmhs.Stage { return &j.Map }, func(j *hmhs.Job) *hmhs.Stage { return &j.Reduce },
	} {
		setEstimates(estimated, stage, hmhs.Estimate(measure(truth, stage, share, tasks, r)))
	}
	planned, err := solve(estimated, plainHMHS)
	if err != nil {
		return 0, err
	}
	ours, err := replay(truth, planned)
	if err != nil {
		return 0, err
	}
	fifo, err := solve(truth, plainFIFO)
	if err != nil {
		return 0, err
	}
	return gain(ours, fifo), nil
}

// measure runs some tasks on a share of the pairs of job and machine.
func measure(truth *hmhs.Batch, selected stageOf, share float64, tasks int, r *rand.Rand) []scheduler.Measured {
	var measurements []scheduler.Measured
	for i := range truth.Jobs {
		stage := selected(&truth.Jobs[i])
		for m, factor := range stage.Factor {
			if r.Float64() >= share {
				continue
			}
			seconds := 0.0
			for range tasks {
				seconds += stage.Time * factor * math.Exp(scatter*r.NormFloat64()-scatter*scatter/2)
			}
			measurements = append(measurements, scheduler.Measured{Job: id(i), Tracker: name(m), Tasks: tasks, Seconds: seconds})
		}
	}
	return measurements
}

// setEstimates replaces the times and factors of a batch by estimates.
func setEstimates(b *hmhs.Batch, selected stageOf, speeds *hmhs.Speeds) {
	for i := range b.Jobs {
		stage := selected(&b.Jobs[i])
		if seconds, ok := speeds.Time(id(i)); ok {
			stage.Time = seconds
		}
		stage.Factor = make([]float64, machines)
		for m := range stage.Factor {
			stage.Factor[m] = speeds.Factor(id(i), name(m))
		}
	}
}

func id(job int) wire.JobID { return wire.JobID{Start: 1, N: job + 1} }

func name(machine int) string { return fmt.Sprint("m", machine) }
