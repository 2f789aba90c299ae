package core

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// runExplains plays the verbs of forecasts and profiles:
//
//	explain job1
//	snapshot map                         the snapshot for the policy
//	history-loaded n1 job1 map=6/12s/t1 [read=100 shuffled=50 reads=100/1s+0/0s+100/3s] [error=…]   LoadHistory has ended: tasks, their time, tracker
//	plan-log                             the plans in the last history
func (s *scenario) runExplains(d *datadriven.TestData) bool {
	first := ""
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "explain":
		x, ok := s.core.Explain(s.now, parseJob(first))
		if !ok {
			s.printf("unknown")
			break
		}
		s.showExplanation(&x)
		s.checkEnds(&x)
	case "snapshot":
		s.showSnapshot(first)
	case "history-loaded":
		s.step(parseLoadedHistory(s.core.Epoch(), d))
	case "plan-log":
		s.showPlanLog()
	default:
		return false
	}
	return true
}

// checkEnds checks that status and explanation predict the same end of a job.
func (s *scenario) checkEnds(x *wire.Explanation) {
	status, _ := s.core.StatusAt(s.now, x.Job)
	want := int64(0)
	if s.core.leader != nil && !x.State.Ended() && x.End != 0 {
		want = x.End - s.core.wallAtZero - s.now.Milliseconds() + status.Elapsed.Milliseconds()
	}
	if got := status.Prediction.Likely.Milliseconds(); got < want-1 || got > want+1 || status.Prediction != x.Prediction { // they round differently
		s.t.Errorf("status predicts the end of %v %d ms after its submission, the explanation %d: %+v and %+v", x.Job, got, want, status.Prediction, x.Prediction)
	}
}

// sinceStart converts Unix milliseconds to the time since the scenario began, rounded to a
// tenth of a second.
func sinceStart(millis int64) string {
	if millis == 0 {
		return "-"
	}
	return (time.Duration(millis-scenarioStart) * time.Millisecond).Round(100 * time.Millisecond).String()
}

func (s *scenario) showExplanation(x *wire.Explanation) {
	s.printf("%s %s %v in pool %s by %s, submitted %s, end %s%s, deadline %s", showJob(x.Job), x.Name, x.State, x.Pool,
		x.Scheduling.Scheduler, sinceStart(x.Submitted), sinceStart(x.End), showPrediction(&x.Prediction, &x.Settings), sinceStart(x.Deadline))
	for _, p := range x.Phases {
		s.printf("  %v: %d of %d done, %d running, %d waiting; place %d of %d, target %d (min %d, max %d); %.3gs a task (%s), %.3gs of work left, end %s", p.Phase,
			p.Done, p.Tasks, p.Running, p.Waiting, p.Place, p.Of, p.Target, p.Min, p.Max, p.TaskSeconds, p.Source, p.RemainingSeconds, sinceStart(p.End))
		if p.Adopted > 0 {
			s.printf("    %d adopted from an earlier leader", p.Adopted)
		}
		if o := p.Oldest; o != nil && s.showNotes {
			s.printf("    oldest: %s on %s for %v, speculation off: %v", showAttempt(o.Attempt), o.Tracker, o.Age, p.SpeculationOff)
		}
		if p.Wait > 0 {
			s.printf("    a map waits for a local slot for %v at most", p.Wait.Round(time.Millisecond))
		}
		for _, v := range p.Speeds {
			s.printf("    on %s: %d in %.3gs each", v.Tracker, v.Tasks, v.TaskSeconds)
		}
	}
	if f := x.Shuffle; f != nil {
		s.printf("  shuffle: %d ready, %d left of %d; place %d of %d, share %.2g", f.Ready, f.Remaining, f.Total, f.Place, f.Of, f.Share)
		if f.PerByte > 0 {
			s.printf("    %.3g bytes of output for one of input", f.PerByte)
		}
	}
	for _, h := range x.Holds {
		due := ""
		if h.Expected != 0 {
			due = ", due " + sinceStart(h.Expected)
		}
		s.printf("  held: %s%s%s", h.Reason, showUntil(h.Until), due)
	}
}

// showPrediction formats what is around the predicted end of a job, in seconds since its submission, and what
// the job will miss.
func showPrediction(p *wire.Prediction, t *wire.Settings) string {
	if p.Known() {
		text := fmt.Sprintf(" (after %.3gs, %.3gs to %.3gs", p.Likely.Seconds(), p.Earliest.Seconds(), p.Latest.Seconds())
		if late := p.LateBy(t); late > 0 {
			text += fmt.Sprintf("; %.3gs late", late.Seconds())
		}
		if step := p.Step(t); step.Cost > 0 {
			text += fmt.Sprintf("; SLA %g after %v", step.Cost, step.After)
		}
		return text + ")"
	}
	if late := p.LateBy(t); late > 0 {
		return fmt.Sprintf(" (%s; %.3gs late or more)", p.Unknown, late.Seconds())
	}
	if p.Unknown != "" {
		return " (" + p.Unknown + ")"
	}
	return ""
}

func (s *scenario) showPlanLog() {
	if err := s.record.Unpack(); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range s.record.Plans {
		more := ""
		for _, q := range p.Queues {
			more += fmt.Sprintf(", %d queued on %s behind %d", q.Tasks, q.Tracker, q.After)
		}
		if p.ShareRank > 0 {
			more += fmt.Sprintf(", share %.3g in turn %d", p.Share, p.ShareRank)
		}
		s.printf("%v %v %s: %d slots, place %d of %d, end %s%s", sinceStart(p.At), p.Phase, p.Scheduling.Scheduler, p.Target, p.Place, p.Places, sinceStart(p.End), more)
	}
	if r := s.record; r.PlansSince > 0 {
		s.printf("unknown before %s: %s", sinceStart(r.PlansSince), r.PlansSinceReason)
	}
}

func (s *scenario) showSnapshot(phase string) {
	snapshot := s.core.leader.snapshot(map[string]int{"map": mapPhase, "reduce": reducePhase}[phase])
	s.printf("%d slots, bandwidth %.3g, usual %.3g", snapshot.Slots, snapshot.Bandwidth, snapshot.TaskSeconds)
	for _, j := range snapshot.Jobs {
		s.printf("%s running=%d max=%d work=%.3g alone=%.3g flow=%d%s", showJob(j.ID), j.Running, j.Max, j.Work, j.Alone, j.Flow, showGoal(j.Goal))
	}
	for _, x := range snapshot.Later {
		after := []string{"after"}
		for _, a := range x.After {
			after = append(after, fmt.Sprintf("%s's %ss", showJob(a.Job), a.Phase))
		}
		lag := ""
		if x.Lag > 0 {
			lag = fmt.Sprintf(" lag=%.3g", x.Lag)
		}
		s.printf("later %s %v max=%d work=%.3g flow=%d%s%s %s", showJob(x.ID), x.Phase, x.Max, x.Work, x.Flow, showGoal(x.Goal), lag, strings.Join(after, " "))
	}
	for _, x := range snapshot.Flows {
		s.printf("flow %d alone=%.3g", x.First, x.Alone)
	}
	for _, x := range snapshot.Transfers {
		s.printf("transfer %s ready=%.0f left=%.0f whole=%.0f maps=%.3g", showJob(x.ID), x.Ready, x.Left, x.Whole, x.Maps)
	}
	for _, x := range snapshot.Trackers {
		free := make([]string, len(x.Free))
		for i, f := range x.Free {
			free[i] = fmt.Sprint(math.Round(10*f) / 10)
		}
		s.printf("tracker %s free in %s", x.ID, strings.Join(free, ", "))
	}
	for _, x := range snapshot.Measured {
		s.printf("measured %s on %s: %d in %.3gs", showJob(x.Job), x.Tracker, x.Tasks, x.Seconds)
	}
}

// parseReads parses the bytes and times of node-local, rack-local and remote reads.
func parseReads(text string) (r wire.Reads) {
	for i, part := range strings.Split(text, "+") {
		bytes, took, _ := strings.Cut(part, "/")
		x := r.At(wire.NodeLocal + wire.Level(i))
		x.Bytes, x.Took = int64(num(bytes)), duration(took)
	}
	return r
}

func parseLoadedHistory(epoch uint64, d *datadriven.TestData) HistoryLoaded {
	r := HistoryLoaded{Epoch: epoch, JobName: d.CmdArgs[0].Key, Err: givenError(d)}
	if r.Err != nil {
		return r
	}
	r.Profile = &history.Profile{Job: parseJob(d.CmdArgs[1].Key)}
	for _, a := range d.CmdArgs[2:] {
		switch a.Key {
		case "map", "reduce":
			parts := strings.Split(a.Vals[0], "/")
			tasks := int(num(parts[0]))
			for range tasks {
				r.Profile.Phases[map[string]int{"map": mapPhase, "reduce": reducePhase}[a.Key]].Add(parts[2], duration(parts[1])/time.Duration(tasks))
			}
		case "reads":
			r.Profile.Reads = parseReads(a.Vals[0])
		case "read":
			r.Profile.Read = int64(num(a.Vals[0]))
		case "shuffled":
			r.Profile.Shuffled = int64(num(a.Vals[0]))
		}
	}
	return r
}
