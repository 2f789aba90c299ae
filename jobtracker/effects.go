package jobtracker

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"time"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler"
)

// ErrPolicyDeadline reports a policy that took longer than [Config.PolicyDeadline].
var ErrPolicyDeadline = errors.New("the policy did not answer in time")

// takeLog feeds all events of the log to the core. Run calls it first, so that an elected job
// tracker answers the first request.
func (s *Server) takeLog() {
	for _, ev := range s.cfg.Log.Take() {
		s.fromLog(ev)
	}
}

// fromLog feeds an event of the log to the core.
func (s *Server) fromLog(ev LogEvent) {
	if ev.Snapshot != nil {
		s.snapshot(ev, s.step)
		return
	}
	switch e := ev.Event.(type) {
	case core.Elected:
		e.Wall = time.Now().UnixMilli()
		s.cfg.Logger.Info("elected", "term", e.Term)
		s.step(e)
	case core.Entry:
		s.cfg.Logger.Debug("entry", "index", e.Index, "fact", facts.Describe(e.Data))
		s.step(e)
	default:
		s.step(ev.Event)
	}
}

// snapshot answers the log's request from another goroutine, since the facts of a large cluster take
// long to encode. A halted core refuses, since it has missed entries. Entries that wait in the core are applied first:
// the log counts them as applied.
func (s *Server) snapshot(ev LogEvent, step func(core.Event)) {
	for s.halted == nil && s.core.EntriesWait() {
		step(core.Tick{})
	}
	if s.halted != nil {
		ev.Snapshot(nil, s.halted)
		return
	}
	view := s.core.Freeze()
	s.encodings.add(func() { ev.Snapshot(view.Snapshot()) })
}

// startEffect executes a command in another goroutine. The result is an event for the core.
func (s *Server) startEffect(c core.Command) {
	switch c := c.(type) {
	case core.LoadSplits:
		s.runOnFiles(c.Epoch, c.Delay, func() core.Event {
			r := core.SplitsLoaded{Epoch: c.Epoch, Job: c.Job}
			r.Splits, r.Err = s.loadSplits(c)
			return r
		})
	case core.RemoveStaging:
		s.runOnFiles(c.Epoch, c.Delay, func() core.Event {
			err := s.filesOf(c.Owner, c.URL).RemoveAll(c.URL)
			if err != nil {
				s.cfg.Logger.Warn("cannot remove a staging directory", "directory", c.URL, "error", err)
			}
			return core.StagingRemoved{Epoch: c.Epoch, Key: c.Key, Err: err}
		})
	case core.WriteHistory:
		s.runOnFiles(c.Epoch, c.Delay, func() core.Event {
			err := history.Write(s.cfg.FS, c.URL, c.Record())
			if err != nil {
				s.cfg.Logger.Warn("cannot write a history", "job", c.Job, "error", err)
			}
			return core.HistoryWritten{Epoch: c.Epoch, Job: c.Job, Err: err}
		})
	case core.LoadHistory:
		s.runOnFiles(c.Epoch, 0, func() core.Event {
			r := core.HistoryLoaded{Epoch: c.Epoch, JobName: c.JobName}
			if r.Profile, r.Err = history.ReadProfile(s.cfg.FS, c.URLs, c.Job); r.Err != nil {
				s.cfg.Logger.Warn("cannot read the profile of an earlier job", "job", c.Job, "name", c.JobName, "error", r.Err)
			}
			return r
		})
	case core.Tidy:
		s.runOnFiles(c.Epoch, 0, func() core.Event {
			err := s.cleanStaging(c, time.Now())
			if err != nil {
				s.cfg.Logger.Warn("cannot tidy the staging directory", "error", err)
			}
			return core.Tidied{Epoch: c.Epoch, Err: err}
		})
	case core.RemoveNonce:
		s.effects.Go(func() {
			if err := s.cfg.FS.Remove(c.URL); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.cfg.Logger.Warn("cannot remove the nonce of a cluster that was not created", "file", c.URL, "error", err)
			}
		})
	case core.Allocate:
		s.effects.Go(func() {
			s.runEffect(c.Epoch, func() core.Event {
				r := core.Allocated{Epoch: c.Epoch, Seq: c.Seq, Phase: c.Phase}
				began := time.Now()
				r.Plan, r.Err = s.plan(c.Policy, c.Snapshot)
				if s.meters.plans.AddTime(time.Since(began)); r.Err != nil {
					s.meters.failedPlans.Add(1)
					s.cfg.Logger.Warn("no new plan", "scheduler", c.Policy, "phase", c.Phase, "error", r.Err)
				}
				return r
			})
		})
	default:
		panic(fmt.Sprintf("jobtracker: unknown command %T", c))
	}
}

// runOnFiles runs an effect on files after a delay, at most maxFileEffects at once. A file system
// that hangs delays only other effects on files: plans and the core do not wait.
func (s *Server) runOnFiles(epoch uint64, after time.Duration, effect func() core.Event) {
	s.effects.Add(1)
	run := func() {
		defer s.effects.Done()
		s.runEffect(epoch, effect)
	}
	if after == 0 {
		s.files.add(run)
		return
	}
	go func() {
		select {
		case <-time.After(after):
		case <-s.done:
		}
		s.files.add(run)
	}()
}

// runEffect runs an effect and feeds its result to the core. It skips an effect of an earlier
// epoch: another leader may have run it since, with another result.
func (s *Server) runEffect(epoch uint64, effect func() core.Event) {
	select {
	case <-s.done:
		return
	default:
	}
	if s.leads(epoch) {
		ev := effect()
		s.post(func() { s.step(ev) })
	}
}

func (s *Server) loadSplits(c core.LoadSplits) ([]core.Split, error) {
	files := local.Confined(s.filesOf(c.Owner, c.Staging), s.cfg.Staging) // the job wrote them
	splits, hash, err := s.cfg.ReadSplits(files, c.Staging, c.Job)
	if err == nil && hash != c.Hash {
		err = fmt.Errorf("splits of %v: hash %x, the setup attempt wrote %x", c.Job, hash, c.Hash)
	}
	return splits, err
}

// plan calls a policy and waits until the deadline. A call that takes longer continues; until it
// returns, plan may call other policies, but not this one.
func (s *Server) plan(name string, snapshot scheduler.Snapshot) (scheduler.Plan, error) {
	policy, err := s.cfg.Policies(name)
	if err != nil {
		return scheduler.Plan{}, err
	}
	deadline := time.NewTimer(s.cfg.PolicyDeadline)
	defer deadline.Stop()
	running := s.policySlot(name)
	select {
	case running <- struct{}{}:
	case <-deadline.C:
		return scheduler.Plan{}, ErrPolicyDeadline
	case <-s.done:
		return scheduler.Plan{}, ErrStopped
	}
	type answer struct {
		plan scheduler.Plan
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { <-running }()
		plan, err := callPolicy(policy, snapshot)
		answers <- answer{plan, err}
	}()
	select {
	case a := <-answers:
		return a.plan, a.err
	case <-deadline.C:
		return scheduler.Plan{}, ErrPolicyDeadline
	case <-s.done:
		return scheduler.Plan{}, ErrStopped
	}
}

// policySlot returns a channel that has a value while the policy name runs.
func (s *Server) policySlot(name string) chan struct{} {
	slot, _ := s.policies.LoadOrStore(name, make(chan struct{}, 1))
	return slot.(chan struct{})
}

// callPolicy calls a policy and validates its plan. It returns a panic as an error.
func callPolicy(policy scheduler.Policy, snapshot scheduler.Snapshot) (plan scheduler.Plan, err error) {
	defer func() {
		if p := recover(); p != nil {
			plan, err = scheduler.Plan{}, fmt.Errorf("the policy panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if plan, err = policy.Plan(snapshot); err != nil {
		return scheduler.Plan{}, err
	}
	return plan, plan.Validate(snapshot)
}
