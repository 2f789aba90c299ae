package core

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// outlook is when the parts of a job should end if the plans in force go on as they
// see it, nobody comes and nothing is lost. Times are the core's; never: not known.
//
// A phase ends when its plan says and then what a fluid plan does not see: its last
// tasks do not end together. Homes gather while maps run, so that the shuffle ends
// with the maps or after them. Reduces follow the shuffle, in the slots that other
// jobs leave them.
type outlook struct {
	job      *job
	takes    [2]take
	tasks    [2]int     // left
	work     [2]float64 // slot-seconds left
	mapped   time.Duration
	shuffled time.Duration
	end      time.Duration // of the job
}

// outlooks foresees all jobs that have not ended, by number.
func (l *Live) outlooks(now time.Duration) map[int]*outlook {
	all := make(map[int]*outlook, len(l.order))
	looks := [2]look{l.lookAt(mapPhase, now), l.lookAt(reducePhase, now)}
	means := [2]take{l.meanTime(mapPhase), l.meanTime(reducePhase)}
	for _, j := range l.order {
		o := &outlook{job: j, mapped: never, shuffled: never, end: never}
		for i, v := range looks {
			t := l.taskTime(j, i)
			if t.time == 0 {
				t = means[i]
			}
			if t.source == sourceDefault && i == reducePhase {
				t = take{o.takes[mapPhase].time, usualDeviation, sourceMaps} // better than any constant
			}
			o.takes[i] = v.corrected(j, t)
			o.tasks[i], o.work[i] = j.left(i), v.work(j, o.takes[i].time)
		}
		all[j.facts.N()] = o
	}
	l.foreseeMaps(looks[mapPhase], all)
	l.foreseeShuffles(now, all)
	l.foreseeReduces(looks[reducePhase], all)
	l.foreseeComing(now, all)
	return all
}

// statusGap is the greatest age of the forecast in a status.
const statusGap = 500 * time.Millisecond

// lately is outlooks as of now, or as they were less than a gap ago.
func (l *Live) lately(now, gap time.Duration) map[int]*outlook {
	if l.foreseen == nil || now-l.foreseenAt >= gap {
		l.foreseen, l.foreseenAt = l.outlooks(now), now
	}
	return l.foreseen
}

// goes says whether a job is on its way, so that its tasks have slots or wait for them.
func (o *outlook) goes() bool {
	j := o.job
	return j.facts.Maps() >= 0 && !j.facts.Stopping() && !j.held && !j.facts.Submission().Suspended()
}

// foreseeMaps sets when maps end.
func (l *Live) foreseeMaps(v look, all map[int]*outlook) {
	slots := l.slots[mapPhase]
	ahead := 0.0 // work of the jobs that come first
	for _, j := range l.precedence(mapPhase, l.order) {
		switch o := all[j.facts.N()]; {
		case !o.goes():
		case o.tasks[mapPhase] == 0:
			o.mapped = v.now
		case slots > 0:
			ahead += o.work[mapPhase]
			o.mapped = l.phaseEnd(v, o, v.now, timeOf(ahead/float64(slots)), slots)
		}
	}
}

// precedence is jobs in the order of the plan in force, the others after those.
func (l *Live) precedence(phase int, jobs []*job) []*job {
	order := slices.Clone(jobs)
	slices.SortStableFunc(order, func(a, b *job) int { return cmp.Compare(l.rankOf(phase, a), l.rankOf(phase, b)) })
	return order
}

// rankOf is a job's place in the plan in force.
func (l *Live) rankOf(phase int, j *job) int {
	x, _ := l.assign.Given(phase, &j.assign)
	return x.Rank
}

// phaseEnd is when a phase of a job ends that begins at from: when the plan in force
// says, else when it is through with what comes before it in line, and that after
// now. It has as many slots then as it has work for in that time.
func (l *Live) phaseEnd(v look, o *outlook, from, inLine time.Duration, slots int) time.Duration {
	p := &l.phases[v.phase]
	end, discrete := max(from, v.now+inLine), false
	if x, ok := l.assign.Given(p.index, &o.job.assign); ok && p.plan.Targets[x.Rank].End > 0 && v.phase == mapPhase {
		end = max(v.now, p.plannedAt+timeOf(p.plan.Targets[x.Rank].End))
		discrete = len(p.plan.Queues) > 0 // such a plan has counted whole tasks
	}
	if o.tasks[v.phase] <= o.job.working(v.phase) {
		return max(from, v.now+v.longest(o.job, o.takes[v.phase]))
	}
	side := min(slots, o.tasks[v.phase])
	if o.job.workers < side {
		end, from = end+v.warm, from+v.warm // others have to be started
	}
	soonest := from + timeOf(o.work[v.phase]/float64(side))
	if o.job.working(v.phase) == 0 && o.tasks[v.phase] == side && end <= soonest {
		return from + allAtOnce(o.takes[v.phase], side)
	}
	end = max(end, soonest)
	if took := end - from; took > 0 {
		side = min(side, max(1, int(o.work[v.phase]/took.Seconds())))
	}
	if discrete {
		return end
	}
	return end + lastTasks(o.takes[v.phase], side)
}

// lateFactor is how much of what the longest of so many tasks takes beyond the mean is
// waited for: half, for it begins as likely early as late.
const lateFactor = 0.5

// lastTasks is by how much the last tasks end later than a fluid plan has it, for they
// begin at different times and do not take the same: half of a task's time is lost on
// average, and the longest of those that begin late is what is waited for.
func lastTasks(t take, slots int) time.Duration {
	lost := float64(slots-1)/float64(2*slots) + lateFactor*t.deviation*highest(slots)
	return time.Duration(lost * float64(t.time))
}

// allAtOnce is how long tasks take that begin together.
func allAtOnce(t take, tasks int) time.Duration {
	return time.Duration(float64(t.time) * (1 + t.deviation*highest(tasks)))
}

// highest is by how many deviations the highest of n is above the mean.
func highest(n int) float64 {
	return quantile((float64(n) - 0.375) / (float64(n) + 0.25)) // Blom
}

// quantile of the standard normal distribution, and below its inverse.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

func below(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }

// longest is when the last of the tasks ends that run, in the mean: of each it is known
// for how long it has run.
func (v look) longest(j *job, t take) time.Duration {
	n := j.working(v.phase)
	if !v.close {
		return allAtOnce(t, n)
	}
	last := time.Duration(0)
	each := math.Pow(0.57, 1/float64(n)) // below which all of n are as often as not
	for a := range j.running(v.phase) {
		rest := v.rest(a, t.time)
		if t.deviation > 0.01 {
			ran := float64(v.ran(a)) / float64(t.time)
			p := below((ran - 1) / t.deviation)
			if p += (1 - p) * each; p < 0.9999 {
				rest = max(rest, time.Duration((1+t.deviation*quantile(p)-ran)*float64(t.time)))
			}
		}
		last = max(last, rest)
	}
	return last
}

// foreseeShuffles sets when all map output is at its homes. Jobs of which the plan in
// force says nothing are served alike.
func (l *Live) foreseeShuffles(now time.Duration, all map[int]*outlook) {
	type shuffle struct {
		o           *outlook
		left, queue float64 // bytes of its own, and until it is through
	}
	var shuffles []*shuffle
	for _, j := range l.order {
		o := all[j.facts.N()]
		if o.mapped == never {
			continue
		}
		o.shuffled = o.mapped
		gathered, _, whole := j.outputs()
		if j.open > 0 && whole > gathered {
			shuffles = append(shuffles, &shuffle{o: o, left: float64(whole - gathered)})
		}
	}
	rate, homes := l.bandwidth()
	if rate == 0 {
		return
	}
	place := make(map[int]int)
	for i, portion := range l.phases[mapPhase].plan.Portions {
		place[portion.Job.N] = i - len(l.phases[mapPhase].plan.Portions)
	}
	slices.SortStableFunc(shuffles, func(a, b *shuffle) int {
		return cmp.Or(cmp.Compare(place[a.o.job.facts.N()], place[b.o.job.facts.N()]), cmp.Compare(a.left, b.left))
	})
	done := 0.0
	for i, s := range shuffles {
		done += s.left
		s.queue = done
		if place[s.o.job.facts.N()] == 0 {
			s.queue += s.left * float64(len(shuffles)-1-i) // what the larger ones have by then
		}
		// Its own homes fetch no faster than they can, and what the last maps make
		// is fetched after them.
		own := rate * float64(min(homes, max(1, s.o.job.hosts.Len()))) / float64(homes)
		last := s.left / float64(max(1, s.o.tasks[mapPhase])) * float64(min(1, s.o.tasks[mapPhase]))
		s.o.shuffled = max(s.o.mapped+timeOf(last/own), now+timeOf(max(s.queue/rate, s.left/own)))
	}
}

// foreseeReduces sets when jobs end, their reduces taking slots as they get ready.
func (l *Live) foreseeReduces(v look, all map[int]*outlook) {
	var order []*outlook
	for _, j := range l.precedence(reducePhase, l.order) {
		if o := all[j.facts.N()]; o.shuffled != never {
			order = append(order, o)
		}
	}
	slices.SortStableFunc(order, func(a, b *outlook) int { return cmp.Compare(a.shuffled, b.shuffled) })
	slots := l.slots[reducePhase]
	through := 0.0 // seconds until the slots are through with the jobs so far
	for _, o := range order {
		end := o.shuffled
		switch {
		case o.tasks[reducePhase] == 0:
		case slots == 0:
			end = never
		default:
			through = max(through, (o.shuffled-v.now).Seconds()) + o.work[reducePhase]/float64(slots)
			end = l.phaseEnd(v, o, o.shuffled, timeOf(through), slots)
		}
		if end == never {
			continue
		}
		o.end = end + l.closeTime
		if o.job.facts.Committing() {
			o.end = v.now + max(l.closeTime-(v.now-o.job.committing), l.closeTime/tail)
		}
	}
}

// foreseeComing sets the ends of jobs that have not begun, by the last one of their
// name: they come when those end whose output they read, and after the others.
func (l *Live) foreseeComing(now time.Duration, all map[int]*outlook) {
	slots := l.slots
	ahead := 0.0
	for _, j := range l.order {
		ahead += all[j.facts.N()].work[mapPhase]
	}
	for _, j := range l.order {
		o := all[j.facts.N()]
		if j.facts.Maps() >= 0 || j.facts.Stopping() || j.facts.Submission().Suspended() || j.profile == nil || slots[mapPhase] == 0 {
			continue
		}
		at := now + timeOf(ahead/float64(slots[mapPhase]))
		for _, f := range l.facts.After(j.facts) {
			if before := all[f.N()]; before != nil {
				at = max(at, before.end)
			}
		}
		for phase, tasks := range [2]int{j.profile.Phases[mapPhase].Tasks, j.facts.Reduces()} {
			if at == never || tasks == 0 {
				continue
			}
			if slots[phase] == 0 {
				at = never
				continue
			}
			waves := (tasks + slots[phase] - 1) / slots[phase]
			o.tasks[phase], o.work[phase] = tasks, times(tasks, o.takes[phase].time)
			at = min(at+timeOf(times(waves, o.takes[phase].time)), now+timeOf(absurd))
		}
		ahead += o.work[mapPhase]
		if o.end = at; at != never {
			o.end += l.closeTime
		}
	}
}

// absurd is a time after which nothing is foreseen: thirty years, in seconds.
const absurd = 1e9

// timeOf is so many seconds, as a policy or a quotient gives them.
func timeOf(seconds float64) time.Duration {
	if !(seconds < absurd) {
		seconds = absurd
	}
	return time.Duration(seconds * float64(time.Second))
}
