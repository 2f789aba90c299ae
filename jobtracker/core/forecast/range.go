package forecast

import "time"

// Range has the times between which a job ends in nine of ten cases. They are on the caller's clock.
// The zero Range means that the end is not known.
type Range struct{ Earliest, Likely, Latest time.Duration }

// Standard errors as a fraction of what they are about. [Range] was calibrated with "mrsim forecast".
const (
	modelError     = 0.1  // the time left: retries, slow task trackers
	sharesDiffer   = 0.25 // the time that tasks of other jobs take: plans change it
	maxLaterDiffer = 0.6  // the time that tasks of jobs of the future take, at most: a large one gets a part only
	shuffleError   = 0.3  // the time that the shuffle takes after the maps
	closeError     = 0.3  // the time from the last task to the end
	upcomingDiffer = 0.2  // the time that a job takes which has not begun
	overdueDiffers = 0.5  // the time that an overdue task has left
)

// The quantiles of a normal distribution for the ends of a range. Nine tenths are between -1.645 and 1.645. Causes that the
// model lacks make jobs end late more often than early.
const (
	earlyQuantile   = -1.645
	soonestQuantile = -2.33 // of Estimate.Soonest: guesses are asked again and again
	lateQuantile    = 1.9
)

// measured reports whether any task of a job, or of the earlier ones with its name, was measured.
func (j *Job) measured() bool {
	for i := range j.Phases {
		if j.Phases[i].All.Tasks > 0 || j.Phases[i].Past.Known() {
			return true
		}
	}
	return false
}

// predictRange sets the range of a job with a known end, which becomes the median: the moments of independent causes
// add up.
func (p *Prediction) predictRange(i int) {
	c, j, e := p.c, &p.jobs[i], &p.f[i]
	e.Measured = j.measured()
	known := e.Measured || e.TasksLeft == [2]int{}
	if e.End == Never || !known && e.Tasks[Map].Source == sourceDefault {
		return
	}
	rest := (e.End - c.Now).Seconds()
	var m moments
	switch {
	case j.Upcoming != nil:
		m = spread(rest, upcomingDiffer)
	case j.Closing:
		m = spread(rest, closeError)
	default:
		m = e.maps.plus(e.reduces)
		m = m.plus(spread((e.ShuffleEnd - e.MapsEnd).Seconds(), shuffleError)).plus(spread(c.Overheads.Close.Seconds(), closeError))
		m = m.shrunk(rest) // the end is at most farFuture
	}
	m = m.times(modelError)
	if e.TasksLeft[Map] > 0 && j.Upcoming == nil { // until now, the ends are means
		earlier := min(e.MapsEnd-c.Now, Duration(e.maps.mean-e.maps.quantile(0)))
		e.MapsEnd, e.ShuffleEnd = e.MapsEnd-earlier, e.ShuffleEnd-earlier
	}
	at := func(z float64) time.Duration { return c.Now + Duration(max(0, m.quantile(z))) }
	if !known {
		e.Soonest = at(soonestQuantile)
		return
	}
	if e.End = at(0); j.Upcoming == nil {
		e.End = max(e.End, e.ShuffleEnd)
	}
	e.Range = Range{min(at(earlyQuantile), e.End), e.End, max(at(lateQuantile), e.End)}
}
