package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
)

// limits are the limits of -limits.
type limits struct {
	core core.Limits
	web  web.Limits
}

// defaultLimits protect the job tracker's memory. A cluster of a few task trackers never reaches
// them.
func defaultLimits() limits {
	l := limits{web: web.Limits{Submissions: 100, Watches: 10_000, Requests: 1000}}
	l.core.Jobs.All, l.core.Begun.All, l.core.Effects = 10_000, 1000, 10_000
	return l
}

// numbers are the limits that are numbers, by name.
func (l *limits) numbers() map[string]*int {
	return map[string]*int{
		"jobs": &l.core.Jobs.All, "user-jobs": &l.core.Jobs.User, "pool-jobs": &l.core.Jobs.Pool,
		"running": &l.core.Begun.All, "user-running": &l.core.Begun.User, "pool-running": &l.core.Begun.Pool,
		"setups": &l.core.Setups, "tracker-setups": &l.core.TrackerSetups, "effects": &l.core.Effects,
		"submissions": &l.web.Submissions, "watches": &l.web.Watches, "requests": &l.web.Requests,
		"task-processes": &l.core.Maximum.Processes, "job-tasks": &l.core.Maximum.Tasks,
	}
}

// set reads a list such as "jobs=500,task-memory=4096". Other limits stay.
func (l *limits) set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return fmt.Errorf("%q: want NAME=VALUE", part)
		}
		if err := l.setOne(name, value); err != nil {
			return err
		}
	}
	return nil
}

const maxMebibytes = 1 << 40

func (l *limits) setOne(name, value string) error {
	number, mebibytes := l.numbers()[name], name == "task-memory"
	switch n, err := strconv.ParseInt(value, 10, 64); {
	case name == "job-lifetime":
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return fmt.Errorf("%s is %q: want a time such as 24h, or 0 for no limit", name, value)
		}
		l.core.Maximum.Lifetime = d
	case number == nil && !mebibytes:
		return fmt.Errorf("%q is not a limit", name)
	case err != nil || n < 0 || n > maxMebibytes:
		return fmt.Errorf("%s is %q: want a whole number, or 0 for no limit", name, value)
	case mebibytes:
		l.core.Maximum.Memory = n << 20
	default:
		*number = int(n)
	}
	return nil
}
