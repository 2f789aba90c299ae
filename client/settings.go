package client

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// Hadoop's names of the properties that are job settings.
const (
	propPriority = "mapreduce.job.priority"
	propQueue    = "mapreduce.job.queuename"
)

// Settings returns the job settings in a job's properties.
func Settings(properties map[string]string) (t wire.Settings, err error) {
	if text := properties[propPriority]; text != "" {
		if t.Priority, err = wire.ParsePriority(text); err != nil {
			return t, fmt.Errorf("property %s: %w", propPriority, err)
		}
	}
	if name := pool.Name(properties[propQueue]); name != wire.DefaultPool {
		t.Pool = name
	}
	return t, nil
}

// SettingsText returns the settings of a job as a line.
func SettingsText(job *wire.JobStatus) string {
	t := &job.Settings
	parts := []string{"pool " + OneLine(poolOf(t)), "priority " + t.Priority.String()}
	if t.Weight != 0 && t.Weight != 1 {
		parts = append(parts, fmt.Sprintf("weight %g", t.Weight))
	}
	if t.Deadline != 0 {
		parts = append(parts, "deadline "+DeadlineText(job))
	}
	if len(t.SLA) > 0 {
		parts = append(parts, "sla "+slaText(t.SLA))
	}
	if t.Batch != "" {
		parts = append(parts, "batch "+OneLine(t.Batch))
	}
	if job.Suspended {
		parts = append(parts, "suspended")
	}
	return strings.Join(parts, ", ")
}

// hasSettings reports whether a job has settings other than the defaults.
func hasSettings(job *wire.JobStatus) bool {
	t := &job.Settings
	return job.Suspended || poolOf(t) != wire.DefaultPool || t.Priority != wire.Normal || t.Weight != 0 && t.Weight != 1 ||
		t.Deadline != 0 || len(t.SLA) > 0 || t.Batch != ""
}

func poolOf(t *wire.Settings) string {
	if t.Pool == "" {
		return wire.DefaultPool
	}
	return t.Pool
}

// DeadlineText formats a job's deadline: "in 5m0s", "late by 3s", "kept" if the job has succeeded
// in time, or "was 3s away" if it failed before. It is empty without a deadline.
func DeadlineText(job *wire.JobStatus) string {
	remaining := job.Settings.Deadline - job.Elapsed
	switch {
	case job.Settings.Deadline == 0:
		return ""
	case job.Settings.Late(job.Elapsed):
		return "late by " + Duration(-remaining)
	case job.State == wire.Succeeded:
		return "kept"
	case job.State.Ended():
		return "was " + Duration(remaining) + " away"
	}
	return "in " + Duration(remaining)
}

func slaText(steps []wire.SLAStep) string {
	var parts []string
	for _, s := range steps {
		parts = append(parts, fmt.Sprintf("%v=%g", s.After, s.Cost))
	}
	return strings.Join(parts, ",")
}
