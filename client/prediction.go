package client

import (
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// PredictionText formats the predicted end of a job: "in 10s (8s to 14s)". Without one it is the reason,
// such as "first tasks still running", or empty.
func PredictionText(job *wire.JobStatus) string {
	return predictionText(job, job.Elapsed, Duration)
}

// predictionText is PredictionText at a time elapsed since the job's submission.
func predictionText(job *wire.JobStatus, elapsed time.Duration, text func(time.Duration) string) string {
	p := &job.Prediction
	switch {
	case job.State.Ended():
		return ""
	case !p.Known():
		return OneLine(p.Unknown)
	}
	left := func(end time.Duration) string { return text(max(end-elapsed, 0)) }
	if left(p.Earliest) == left(p.Latest) {
		return "in " + left(p.Likely)
	}
	return fmt.Sprintf("in %s (%s to %s)", left(p.Likely), left(p.Earliest), left(p.Latest))
}

// endText is predictionText as part of a line: "ends in 10s (8s to 14s)". Before a job runs, its state says
// enough.
func endText(job *wire.JobStatus, elapsed time.Duration, text func(time.Duration) string) string {
	predicted := predictionText(job, elapsed, text)
	switch {
	case predicted != "" && job.Prediction.Known():
		return "ends " + predicted
	case job.State == wire.Running:
		return predicted
	}
	return ""
}

// MissText says which deadline and which step of its SLA a job will miss; empty: none that is known.
// It does not repeat a deadline that has passed, see [DeadlineText].
func MissText(job *wire.JobStatus) string { return missText(job, job.Elapsed) }

func missText(job *wire.JobStatus, elapsed time.Duration) string {
	if job.State.Ended() {
		return ""
	}
	var parts []string
	if late := job.Prediction.LateBy(&job.Settings); late > 0 && !job.Settings.Late(elapsed) {
		if job.Prediction.Known() {
			parts = append(parts, "will miss its deadline by about "+shortTime(late))
		} else {
			parts = append(parts, "will probably miss its deadline, by "+shortTime(late)+" or more")
		}
	}
	if step := job.Prediction.Step(&job.Settings); step.After > 0 {
		will := "will"
		if !job.Prediction.Known() {
			will = "will probably"
		}
		parts = append(parts, fmt.Sprintf("%s cost %g by its SLA, since it ends later than %s", will, step.Cost, Duration(step.After)))
	}
	return strings.Join(parts, "; ")
}

// GoalText is the deadline of a job, and what it will miss: "in 5m0s, will miss its deadline by about 2m00s".
func GoalText(job *wire.JobStatus) string {
	parts := []string{DeadlineText(job), MissText(job)}
	if parts[0] == "" || parts[1] == "" {
		return parts[0] + parts[1]
	}
	return strings.Join(parts, ", ")
}
