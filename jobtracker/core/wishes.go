package core

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

var (
	// ErrBadTerms answers terms that make no sense, or name what is not there.
	ErrBadTerms = errors.New("bad terms")
	// ErrBadScheduling answers a scheduler, metric or delay rule that is not on the menu.
	ErrBadScheduling = errors.New("bad scheduling")
)

// wishes is what users wish and is not in the log yet.
type wishes struct {
	changes   map[string]*inTurn[Change] // by submission key
	proposed  map[string]*facts.Changed  // what the first of them is proposed as
	schedules inTurn[Schedule]
	drains    inTurn[Drain]
	rule      locality.Rule // in force
	metric    scheduler.Metric
	name      string          // of the policy
	asked     wire.Scheduling // in force, known to this build or not
	unknown   string          // what of the scheduling asked for is not known here
	pools     *pool.Table     // read last, until it is in force
	badPools  string          // why the newest pool table is not in force
}

// defaultScheduling is in force where nobody says otherwise.
var defaultScheduling = wire.Scheduling{Scheduler: "fifo", Metric: "sum-response", Delay: "none"}

// scheduling is in force: the last one that was asked for, else what this job
// tracker was started with.
func (c *Core) scheduling() wire.Scheduling {
	return c.facts.Scheduled().Scheduling.Over(c.cfg.Scheduling).Over(defaultScheduling)
}

// CheckScheduling says what of s is not on the menu. What is empty is.
func CheckScheduling(s wire.Scheduling) error {
	_, _, err := parseScheduling(s.Over(defaultScheduling))
	return err
}

func parseScheduling(s wire.Scheduling) (metric scheduler.Metric, rule locality.Rule, err error) {
	if _, err = menu.Policy(s.Scheduler); err == nil {
		if metric, err = scheduler.ParseMetric(s.Metric); err == nil {
			rule, err = locality.ParseRule(s.Delay)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBadScheduling, err)
	}
	return metric, rule, err
}

// obey takes up the scheduling in force, and drops the Plans of another one. What a
// later build has put into the log, and this one does not know, is as if not said.
func (l *Live) obey() {
	s := l.c.scheduling()
	metric, rule, err := parseScheduling(s)
	l.requests.wishes.asked, l.requests.wishes.unknown = s, ""
	if err != nil {
		l.requests.wishes.unknown = err.Error()
		s = defaultScheduling
		metric, rule, _ = parseScheduling(s)
	}
	l.requests.wishes.name, l.requests.wishes.metric, l.requests.wishes.rule = s.Scheduler, metric, rule
	for i := range l.phases {
		p := &l.phases[i]
		l.dropPlan(p)
		l.notePlan(p)
		p.begun(l.now)
	}
	l.assign.SetRule(rule)
	for _, j := range l.order {
		j.housing.movesDue = 0
	}
}

// noPlan says why slots are shared by an older plan, or by none.
func (l *Live) noPlan() string {
	texts := []string{l.requests.wishes.unknown}
	for i := range l.phases {
		if why := l.phases[i].noPlan; why != "" {
			texts = append(texts, fmt.Sprintf("%ss: %s", l.phases[i].kind, why))
		}
	}
	return strings.TrimPrefix(strings.Join(texts, "; "), "; ")
}

// schedule changes how slots are shared, one request after the other.
func (l *Live) schedule(r Schedule) {
	if err := CheckScheduling(r.Scheduling); err != nil {
		l.c.emit(Reply{Token: r.Token, Err: err})
		return
	}
	l.requests.wishes.schedules.ask(r, l.proposeSchedule)
}

func (l *Live) proposeSchedule(r Schedule) {
	now := l.facts.Scheduled()
	l.propose(&facts.Scheduled{N: now.N + 1, Scheduling: r.Scheduling.Over(now.Scheduling)})
}

func (l *Live) scheduleApplied(x *facts.Scheduled, fitted bool) {
	if fitted {
		l.obey()
	}
	l.requests.wishes.schedules.applied(l.c, func(r Schedule) bool {
		return fitted && x.Scheduling == r.Scheduling.Over(x.Scheduling)
	}, l.proposeSchedule)
}

// change asks for other terms, or for a submission to be suspended or resumed.
func (l *Live) change(r Change) {
	f := l.facts.Find(r.Job)
	switch {
	case f == nil:
		l.c.emit(Reply{Token: r.Token, Err: fmt.Errorf("%v: %w", r.Job, ErrUnknownJob)})
		return
	case f.Ended() || !f.Submission().Open():
		l.c.emit(Reply{Token: r.Token, Err: fmt.Errorf("%v: %w", r.Job, ErrJobEnded)})
		return
	}
	if err := r.By.may("change", r.Job, f.Submission().Who()); err != nil {
		l.c.emit(Reply{Token: r.Token, Err: err})
		return
	}
	err := checkTerms(l.changedTerms(f.Submission(), r))
	if err == nil && r.Pool != nil {
		err = l.checkPool(*r.Pool, f.Submission().Who(), r.By)
	}
	if err != nil {
		l.c.emit(Reply{Token: r.Token, Err: fmt.Errorf("%v: %w", r.Job, err)})
		return
	}
	waiting := l.requests.wishes.changes[f.Submission().Key()]
	if waiting == nil {
		waiting = new(inTurn[Change])
		l.requests.wishes.changes[f.Submission().Key()] = waiting
	}
	waiting.ask(r, l.proposeChange)
}

// changedTerms is what a submission's terms are after a change.
func (l *Live) changedTerms(s *facts.Submission, r Change) wire.Terms {
	terms := s.Terms()
	set(&terms.Priority, r.Priority)
	set(&terms.Weight, r.Weight)
	set(&terms.SLA, r.SLA)
	set(&terms.Pool, r.Pool)
	set(&terms.Batch, r.Batch)
	if r.Deadline != nil {
		terms.Deadline = 0
		if *r.Deadline != 0 {
			age := time.Duration(l.wall()-s.At()) * time.Millisecond
			// A deadline at the very submission is missed as one just before.
			terms.Deadline = cmp.Or(age+*r.Deadline, -1)
		}
	}
	if len(terms.SLA) == 0 {
		terms.SLA = nil // as it comes back from the log
	}
	return terms
}

func set[T any](field *T, wanted *T) {
	if wanted != nil {
		*field = *wanted
	}
}

func (l *Live) proposeChange(r Change) {
	s := l.facts.Find(r.Job).Submission()
	suspended := s.Suspended()
	set(&suspended, r.Suspended)
	x := &facts.Changed{Key: s.Key(), N: s.Changes() + 1, Terms: l.changedTerms(s, r), Suspended: suspended}
	l.requests.wishes.proposed[s.Key()] = x
	l.propose(x)
}

func (l *Live) changeApplied(x *facts.Changed, fitted bool) {
	s := l.facts.Submission(x.Key)
	if s == nil {
		return
	}
	for i := range s.Jobs() {
		if j := l.jobs[s.First()+i]; fitted && j != nil {
			l.touch(j)
			l.move(j)
			if s.Suspended() {
				l.letGoAll(j)
			}
		}
	}
	if fitted {
		for i := range l.phases {
			l.phases[i].begun(l.now)
		}
	}
	if waiting := l.requests.wishes.changes[x.Key]; waiting != nil {
		waiting.applied(l.c, func(Change) bool { return fitted && reflect.DeepEqual(x, l.requests.wishes.proposed[x.Key]) }, l.proposeChange)
	}
}

// dropChanges answers what was asked of a submission that has ended meanwhile.
func (l *Live) dropChanges(s *facts.Submission) {
	if s.Open() {
		return
	}
	if waiting := l.requests.wishes.changes[s.Key()]; waiting != nil {
		for _, r := range waiting.waiting {
			l.c.emit(Reply{Token: r.Token, Err: fmt.Errorf("%v: %w", r.Job, ErrJobEnded)})
		}
	}
	delete(l.requests.wishes.changes, s.Key())
	delete(l.requests.wishes.proposed, s.Key())
}

// tokens are those of all requests that wait.
func (w *wishes) tokens() []Token {
	all := append(w.drains.tokens(), w.schedules.tokens()...)
	for _, waiting := range w.changes {
		all = append(all, waiting.tokens()...)
	}
	return all
}

// Bounds of terms.
const (
	maxSteps = 100 // of an SLA
	maxWord  = 200 // bytes of a name
)

// checkTerms says what makes no sense in a submission's terms, wherever it is to run.
// A deadline that has passed does.
func checkTerms(t wire.Terms) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrBadTerms, fmt.Sprintf(format, args...))
	}
	switch {
	case t.Priority < wire.VeryLow || t.Priority > wire.VeryHigh:
		return bad("priority %d", t.Priority)
	case t.Weight != 0 && !(t.Weight >= leastWeight && t.Weight <= mostWeight):
		return bad("weight %v: want a number from %g to %g", t.Weight, leastWeight, mostWeight)
	case t.Deadline.Abs() > mostTime:
		return bad("the deadline is %v away, at most %v", t.Deadline, mostTime)
	case len(t.SLA) > maxSteps:
		return bad("an SLA of %d steps, at most %d", len(t.SLA), maxSteps)
	case len(t.Batch) > maxWord || len(t.Pool) > maxWord:
		return bad("names of more than %d bytes", maxWord)
	}
	var last wire.SLAStep
	for i, step := range t.SLA {
		switch {
		case !amount(step.Cost):
			return bad("the SLA's cost %v after %v: want a number that is not negative", step.Cost, step.After)
		case step.After.Abs() > mostTime:
			return bad("the SLA's step after %v, at most %v", step.After, mostTime)
		case i > 0 && (step.After <= last.After || step.Cost < last.Cost):
			return bad("the SLA's cost %v after %v follows %v after %v: both must grow", step.Cost, step.After, last.Cost, last.After)
		}
		last = step
	}
	return nil
}

// Bounds of terms, within which every policy can compute.
const (
	leastWeight = 1e-6
	mostWeight  = 1e6
	mostTime    = 10 * 365 * 24 * time.Hour
)

// amount says whether x can be a cost.
func amount(x float64) bool { return x >= 0 && x <= 1e12 }

// goalOf is what terms ask of the end of a job that was submitted at a time.
func goalOf(t wire.Terms, submitted time.Duration) scheduler.Goal {
	weight := t.Weight
	if weight == 0 {
		weight = 1
	}
	goal := scheduler.Goal{Weight: weight * t.Priority.Factor(), Submitted: submitted}
	if t.Deadline != 0 {
		goal.Deadline = cmp.Or(submitted+t.Deadline, -1) // 0 is none
	}
	for _, step := range t.SLA {
		goal.Steps = append(goal.Steps, scheduler.Step{By: submitted + step.After, Cost: step.Cost})
	}
	return goal
}
