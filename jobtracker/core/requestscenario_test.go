package core

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/groups"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// runRequests plays the verbs of job settings, scheduling and pools:
//
//	submit … [owner=ann] [pool=p] [priority=HIGH] [weight=2] [deadline=5m] [due=5m] [sla=5m:1+10m:5] [batch=b] [session=ann~s]
//	change job1 [priority=…] [weight=…] [deadline=…] [sla=…|none] [batch=…] [pool=…] [suspended=true] [now=true] [by=bob]
//	schedule [scheduler=fair] [metric=max-stretch] [delay=fixed=3s]
//	pools [from=f.xml] [groups]          the allocation file below is read; groups: the job tracker knows some
//	pools error=…                        the file cannot be read
//	snapshot-jobs map                    the jobs in the snapshot for the policy
//	cluster-status                       scheduling, pools and their errors
//	limits jobs=3 user-jobs=2 pool-jobs=2 running=1 user-running=1 pool-running=1 setups=1 effects=9 memory=1024 processes=9 tasks=5 lifetime=1h
//	                                     before elect: the limits of Config
//	settings job1
//	owner job1
func (s *scenario) runRequests(d *datadriven.TestData) bool {
	switch d.Cmd {
	case "change":
		s.token++
		s.step(Change{Token: s.token, By: caller(d), Job: parseJob(d.CmdArgs[0].Key), Change: parseChange(s.t, d)})
	case "schedule":
		s.token++
		s.step(Schedule{Token: s.token, Scheduling: wire.Scheduling{
			Scheduler: value(d, "scheduler", ""), Metric: value(d, "metric", ""), Delay: value(d, "delay", ""),
		}})
	case "pools":
		ev := PoolsRead{Err: givenError(d)}
		if ev.Err == nil {
			ev.Table, ev.Err = pool.Parse(value(d, "from", "f.xml"), []byte(d.Input))
			if !d.HasArg("groups") {
				ev.Table = ev.Table.WithoutGroups()
			}
		}
		s.step(ev)
	case "limits":
		s.setLimits(d)
	case "snapshot-jobs":
		s.showSnapshotJobs(d.CmdArgs[0].Key)
	case "cluster-status":
		s.clusterStatus()
	case "owner":
		st, _ := s.core.Status(parseJob(d.CmdArgs[0].Key))
		s.printf("%s", st.Owner)
	case "settings":
		st, _ := s.core.Status(parseJob(d.CmdArgs[0].Key))
		s.printf("%+v suspended=%v waits %q", st.Settings, st.Suspended, st.WaitReason)
	default:
		return false
	}
	return true
}

// due reads the deadline of a submission, in Unix milliseconds.
func due(d *datadriven.TestData) int64 {
	if text := value(d, "due", ""); text != "" {
		return scenarioStart + duration(text).Milliseconds()
	}
	return 0
}

func submittedSettings(d *datadriven.TestData) wire.Settings {
	c := parseChange(nil, d)
	return wire.Settings{
		Priority: orZero(c.Priority), Weight: orZero(c.Weight), Deadline: orZero(c.Deadline), SLA: orZero(c.SLA),
		Batch: orZero(c.Batch), Pool: orZero(c.Pool),
	}
}

// orZero returns the value of an optional field.
func orZero[T any](field *T) (value T) {
	if field != nil {
		value = *field
	}
	return value
}

func parseChange(t *testing.T, d *datadriven.TestData) wire.Change {
	var c wire.Change
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			continue
		}
		text := a.Vals[0]
		var err error
		switch a.Key {
		case "priority":
			c.Priority = new(wire.Priority)
			if *c.Priority, err = wire.ParsePriority(text); err != nil {
				n, _ := strconv.Atoi(text)
				*c.Priority, err = wire.Priority(n), nil
			}
		case "weight":
			c.Weight = new(float64)
			*c.Weight, err = strconv.ParseFloat(text, 64)
		case "deadline":
			c.Deadline = new(time.Duration)
			*c.Deadline, err = time.ParseDuration(text)
		case "sla":
			c.SLA, err = parseSLA(text)
		case "batch":
			c.Batch = &text
		case "pool":
			c.Pool = &text
		case "suspended":
			c.Suspended = new(bool)
			*c.Suspended, err = strconv.ParseBool(text)
		case "now":
			c.TakeBack, err = strconv.ParseBool(text)
		}
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	return c
}

func parseSLA(text string) (*[]wire.SLAStep, error) {
	steps := []wire.SLAStep{}
	if text == "none" {
		return &steps, nil
	}
	for part := range strings.SplitSeq(text, "+") {
		after, cost, _ := strings.Cut(part, ":")
		var step wire.SLAStep
		var err error
		if step.After, err = time.ParseDuration(after); err == nil {
			step.Cost, err = strconv.ParseFloat(cost, 64)
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	return &steps, nil
}

func (s *scenario) showSnapshotJobs(phase string) {
	l := s.core.leader
	i := mapPhase
	if phase == "reduce" {
		i = reducePhase
	}
	snapshot := l.snapshot(i)
	for _, j := range snapshot.Jobs {
		text := fmt.Sprintf("%s arrived=%v running=%d max=%d min=%d share=%.4g priority=%d weight=%v",
			showJob(j.ID), j.Arrived, j.Running, j.Max, j.Min, j.Share, j.Priority, j.Goal.Weight)
		if j.Goal.Deadline != 0 {
			text += fmt.Sprintf(" deadline=%v", j.Goal.Deadline)
		}
		for _, step := range j.Goal.Steps {
			text += fmt.Sprintf(" %v:%v", step.By, step.Cost)
		}
		if j.Pool > 0 {
			text += fmt.Sprintf(" pool min=%d max=%d", snapshot.Pools[j.Pool-1].Min, snapshot.Pools[j.Pool-1].Max)
		}
		s.printf("%s", text)
	}
}

func (s *scenario) clusterStatus() {
	c := s.core.Cluster(s.now)
	s.printf("%s %s %s", c.Scheduling.Scheduler, c.Scheduling.Metric, c.Scheduling.Delay)
	if c.NoPlan != "" {
		s.printf("no plan: %s", c.NoPlan)
	}
	s.printf("pools %s", c.Pools)
	for _, p := range c.InPools {
		s.printf("%s min=%v max=%v weight=%v jobs=%d/%d running=%v gone=%v", p.Name, p.Min, p.Max, p.Weight, p.Jobs, p.MaxJobs, p.Running, p.Removed)
	}
	for _, note := range c.PoolNotes {
		s.printf("note: %s", note)
	}
}

// caller reads the user of a request: by=NAME, or by=NAME,admin for an administrator. groups=LINE is a line
// of the groups of all users.
func caller(d *datadriven.TestData) Caller {
	name, admin, _ := strings.Cut(value(d, "by", ""), ",")
	c := Caller{Name: name, Admin: admin == "admin"}
	if line := value(d, "groups", ""); line != "" {
		c.Groups, _ = groups.Parse([]byte(line)) // nil for a bad one
	}
	return c
}
