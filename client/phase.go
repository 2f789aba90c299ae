package client

import (
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// phase is the progress of a job in one of three phases: map, shuffle and reduce.
type phase struct {
	name      string
	bytes     wire.Progress
	estimated bool // bytes.Total is an estimate, since maps still run
	percent   int
	tasks     wire.TaskCounts
}

// phases returns the phases of a job. A job without reduces has only the phase map.
func phases(job *wire.JobStatus) []phase {
	mapped := phase{name: "map", bytes: job.Read, tasks: job.Maps}
	mapped.percent = percent(job.Read, job.Maps, job.State)
	if job.Reduces.Total == 0 {
		return []phase{mapped}
	}
	// While maps run, the totals of later phases are estimates.
	estimated := !job.Maps.Ended()
	shuffled := phase{name: "shuffle", bytes: job.Shuffled, estimated: estimated}
	gathered := wire.TaskCounts{Total: 1}
	if !estimated && job.Shuffled.Done >= job.Shuffled.Total {
		gathered.Done = 1
	}
	shuffled.percent = percent(shuffled.bytes, gathered, job.State)
	reduced := phase{name: "reduce", bytes: job.Reduced, estimated: estimated, tasks: job.Reduces}
	reduced.percent = percent(job.Reduced, job.Reduces, job.State)
	return []phase{mapped, shuffled, reduced}
}

// Progress returns the progress of a job's maps and of its reduces in percent, as Hadoop counts: a third of a reduce's
// work is to fetch map outputs.
func Progress(job *wire.JobStatus) (maps, reduces int) {
	all := phases(job)
	if len(all) == 1 {
		return all[0].percent, 0
	}
	return all[0].percent, (all[1].percent + 2*all[2].percent) / 3
}

// percent returns the share of done bytes, or of done tasks if bytes are not known. It is 100 only
// when all tasks are done.
func percent(bytes wire.Progress, tasks wire.TaskCounts, state wire.State) int {
	done, total := bytes.Done, bytes.Total
	if total <= 0 {
		done, total = int64(tasks.Done), int64(tasks.Total)
	}
	switch {
	case state == wire.Succeeded, state == wire.Committing, state == wire.Running && tasks.Ended():
		return 100
	case total <= 0:
		return 0
	}
	return int(min(float64(done)/float64(total)*100, 99))
}

// stateText describes a job's state, with the reason why it waits or stops.
func stateText(job *wire.JobStatus) string {
	switch job.State {
	case wire.Waiting:
		if job.WaitReason != "" {
			return "waiting " + OneLine(job.WaitReason)
		}
	case wire.Preparing:
		return "computing splits"
	case wire.Committing:
		return "committing its output"
	case wire.Stopping:
		if !job.StoppedBy.IsZero() {
			return fmt.Sprintf("stopping with %v", job.StoppedBy)
		}
		if job.Error != "" {
			cause, _, _ := strings.Cut(job.Error, "\n")
			return "stopping: " + OneLine(cause)
		}
	}
	return job.State.String()
}

// plainLine returns a job's progress in one line, for an output that is not a terminal.
func plainLine(job *wire.JobStatus) string {
	if job.State != wire.Running && job.State != wire.Succeeded {
		return stateText(job)
	}
	var parts []string
	for _, p := range phases(job) {
		parts = append(parts, fmt.Sprintf("%s %d%%", p.name, p.percent))
	}
	line := strings.Join(parts, " ")
	return line + failedText(job.Maps.FailedAttempts+job.Reduces.FailedAttempts) + givenUpText(job.Maps.GivenUp+job.Reduces.GivenUp)
}

// failedText returns the part of a line about failed attempts.
func failedText(attempts int) string {
	switch attempts {
	case 0:
		return ""
	case 1:
		return ", 1 attempt failed"
	}
	return fmt.Sprintf(", %d attempts failed", attempts)
}

// givenUpText returns the part of a line about tasks that were given up.
func givenUpText(tasks int) string {
	switch tasks {
	case 0:
		return ""
	case 1:
		return ", 1 task given up"
	}
	return fmt.Sprintf(", %d tasks given up", tasks)
}

func tasksText(t wire.TaskCounts) string {
	if t.Total == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d tasks", t.Done, t.Total)
	if t.Running > 0 {
		text += fmt.Sprintf(", %d running", t.Running)
	}
	return text + failedText(t.FailedAttempts) + givenUpText(t.GivenUp)
}

func bytesText(p phase) string {
	switch {
	case p.bytes.Total > 0 && p.estimated:
		return Size(p.bytes.Done) + " of about " + Size(p.bytes.Total)
	case p.bytes.Total > 0:
		return Size(p.bytes.Done) + " of " + Size(p.bytes.Total)
	case p.bytes.Done > 0:
		return Size(p.bytes.Done)
	}
	return ""
}

// Size formats a number of bytes in binary units, with one decimal from KiB up.
func Size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/(1<<10), 0
	for value >= 1<<10 && unit < 4 {
		value, unit = value/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[unit])
}

// shortTime formats a duration in whole seconds.
func shortTime(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case d < manyDays:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
	return days(d)
}

// wallTime formats a duration: below a minute with tenths of a second, else as shortTime.
func wallTime(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return shortTime(d)
}

// Duration formats a duration. It rounds to milliseconds below a second, to tenths of a second
// below a minute, and else to seconds.
func Duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < manyDays:
		return d.Round(time.Second).String()
	}
	return days(d)
}

// manyDays is the shortest duration that is printed in days.
const manyDays = 7 * 24 * time.Hour

func days(d time.Duration) string {
	h := int64(d / time.Hour)
	return fmt.Sprintf("%dd%dh", h/24, h%24)
}
