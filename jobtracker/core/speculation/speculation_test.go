package speculation

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
)

const sec = time.Second

func sum(tasks int, took time.Duration) history.Sum { return history.Sum{Tasks: tasks, Took: took} }

// usualPhase has 90 of 100 tasks ended, after 10 s each.
func usualPhase() Phase {
	return Phase{Tasks: 100, Running: 10, Ended: sum(90, 900*sec)}
}

// otherJobs makes a phase without ended tasks: tasks of other jobs take 10 s.
func otherJobs(p *Phase) { p.Ended, p.Others = sum(1, 10*sec), true }

func TestRemaining(t *testing.T) {
	for name, c := range map[string]struct {
		p    func(*Phase)
		a    Attempt
		want time.Duration
	}{
		"young":                            {a: Attempt{Age: 2 * sec}, want: 8 * sec},
		"just below the limit":             {a: Attempt{Age: 14 * sec}, want: -4 * sec},
		"beyond the limit":                 {a: Attempt{Age: 16 * sec}, want: 16 * sec},
		"times vary: not beyond the limit": {p: func(p *Phase) { p.Deviation = 0.3 }, a: Attempt{Age: 16 * sec}, want: -6 * sec},
		"slow tracker":                     {a: Attempt{Age: sec, There: sum(2, 200*sec)}, want: 99 * sec},
		"beyond a slow tracker's mean":     {a: Attempt{Age: 120 * sec, There: sum(2, 200*sec)}, want: 120 * sec},
		"tracker is not slow":              {p: func(p *Phase) { p.Ended = sum(92, 928*sec) }, a: Attempt{Age: sec, There: sum(2, 28*sec)}, want: 9 * sec},
		"few ended: not beyond the limit":  {p: func(p *Phase) { p.Ended = sum(3, 30*sec) }, a: Attempt{Age: 20 * sec}, want: -10 * sec},
		"slow tracker, its tasks are not usual": {
			p: func(p *Phase) { p.Ended = sum(5, 230*sec) }, // three of 10 s elsewhere, two of 100 s here
			a: Attempt{Age: sec, There: sum(2, 200*sec)}, want: 99 * sec,
		},
		"only its own tracker":      {p: func(p *Phase) { p.Ended = sum(2, 20*sec) }, a: Attempt{Age: sec, There: sum(2, 20*sec)}, want: 9 * sec},
		"other jobs: not slow":      {p: otherJobs, a: Attempt{Age: 90 * sec}, want: -80 * sec},
		"other jobs: slow":          {p: otherJobs, a: Attempt{Age: 110 * sec}, want: 110 * sec},
		"other jobs: progress":      {p: otherJobs, a: Attempt{Age: 110 * sec, Done: 0.5}, want: 110 * sec},
		"other jobs: much progress": {p: otherJobs, a: Attempt{Age: 120 * sec, Done: 0.8}, want: 30 * sec},
		"other jobs: too early":     {p: otherJobs, a: Attempt{Age: 60 * sec, Done: 0.1}, want: -50 * sec},
		"progress":                  {a: Attempt{Age: 10 * sec, Done: 0.1}, want: 90 * sec},
		"progress on a slow one":    {a: Attempt{Age: 10 * sec, Done: 0.5, There: sum(2, 200*sec)}, want: 90 * sec},
		"progress too early":        {a: Attempt{Age: 4 * sec, Done: 0.01}, want: 6 * sec},
		"progress without an end":   {a: Attempt{Age: 40 * sec, Done: 0.99}, want: 40 * sec},
		"all of its input is read":  {a: Attempt{Age: 20 * sec, Done: 1}, want: 20 * sec},
		"nothing of it is read yet": {a: Attempt{Age: 20 * sec}, want: 20 * sec},
	} {
		p := usualPhase()
		if c.p != nil {
			c.p(&p)
		}
		if got := p.Remaining(DefaultRules, &c.a); (got - c.want).Abs() > time.Millisecond {
			t.Errorf("%s: %v left, want %v", name, got, c.want)
		}
	}
}

func TestChoose(t *testing.T) {
	slow := Attempt{Age: 30 * sec}
	slower := Attempt{Age: 60 * sec}
	fast := Site{Free: 1, There: sum(3, 15*sec)}
	for name, c := range map[string]struct {
		phase    func(*Phase)
		rules    func(*Rules)
		attempts []Attempt
		sites    []Site
		never    [][2]int
		want     []Choice
	}{
		"nothing is slow":            {attempts: []Attempt{{Age: 12 * sec}}, sites: []Site{fast}},
		"no free slot":               {attempts: []Attempt{slow}, sites: []Site{{}}},
		"slow":                       {attempts: []Attempt{slow}, sites: []Site{{Free: 1}}, want: []Choice{{0, 0}}},
		"the slowest first":          {attempts: []Attempt{slow, slower}, sites: []Site{{Free: 1}}, want: []Choice{{1, 0}}},
		"the fastest site first":     {attempts: []Attempt{slow, slower}, sites: []Site{{Free: 1}, fast}, want: []Choice{{1, 1}, {0, 0}}},
		"a known site first":         {attempts: []Attempt{slow}, sites: []Site{{Free: 2}, {Free: 1, There: sum(1, 11*sec)}}, want: []Choice{{0, 1}}},
		"more free slots first":      {attempts: []Attempt{slow}, sites: []Site{{Free: 1}, {Free: 2}}, want: []Choice{{0, 1}}},
		"not allowed there":          {attempts: []Attempt{slow}, sites: []Site{fast, {Free: 1}}, never: [][2]int{{0, 0}}, want: []Choice{{0, 1}}},
		"the site is slow itself":    {attempts: []Attempt{slow}, sites: []Site{{Free: 1, There: sum(1, 25*sec)}}},
		"it begins too late":         {phase: func(p *Phase) { p.Before = 20 * sec }, attempts: []Attempt{slow}, sites: []Site{{Free: 1}}},
		"too few have ended":         {phase: func(p *Phase) { p.Ended = sum(4, 40*sec) }, attempts: []Attempt{slow}, sites: []Site{fast}},
		"only those of other jobs":   {phase: otherJobs, attempts: []Attempt{{Age: 110 * sec}}, sites: []Site{{Free: 1}}, want: []Choice{{0, 0}}},
		"none has ended":             {phase: func(p *Phase) { p.Tasks, p.Ended = 1, history.Sum{} }, attempts: []Attempt{slow}, sites: []Site{fast}},
		"short tasks":                {phase: func(p *Phase) { p.Ended = sum(90, 9*sec) }, attempts: []Attempt{{Age: 400 * time.Millisecond}}, sites: []Site{{Free: 1}}},
		"the cap of all tasks":       {rules: func(r *Rules) { r.AtLeast = 0 }, attempts: []Attempt{slow, slower}, sites: []Site{{Free: 2}}, want: []Choice{{1, 0}}},
		"the cap of running tasks":   {phase: func(p *Phase) { p.Running = 20 }, rules: func(r *Rules) { r.AtLeast = 0 }, attempts: []Attempt{slow, slower}, sites: []Site{{Free: 2}}, want: []Choice{{1, 0}, {0, 0}}},
		"the cap is reached already": {phase: func(p *Phase) { p.Speculative = 10 }, attempts: []Attempt{slow}, sites: []Site{fast}},
	} {
		p, r := usualPhase(), DefaultRules
		if c.phase != nil {
			c.phase(&p)
		}
		if c.rules != nil {
			c.rules(&r)
		}
		got := Choose(&p, r, c.attempts, c.sites, func(a, s int) bool { return !slices.Contains(c.never, [2]int{a, s}) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: chose %v, want %v", name, got, c.want)
		}
	}
}

// chooseSimply chooses pair by pair, from all pairs.
func chooseSimply(p Phase, r Rules, attempts []Attempt, sites []Site, allowed func(a, s int) bool) (chosen []Choice) {
	sites, taken := slices.Clone(sites), make(map[int]bool)
	for p.Comparable() && p.Limit(r) > 0 {
		best, found := Choice{}, false
		for a := range attempts {
			for s := range sites {
				left, there := p.Remaining(r, &attempts[a])-p.Before, p.at(&sites[s])
				if taken[a] || sites[s].Free == 0 || !allowed(a, s) || left <= there+minGain || float64(left) <= worthwhile*float64(there) {
					continue
				}
				bestLeft, bestThere := p.Remaining(r, &attempts[best.Attempt])-p.Before, p.at(&sites[best.Site])
				known, bestKnown := sites[s].There.Tasks > 0, sites[best.Site].There.Tasks > 0
				switch {
				case !found, left > bestLeft:
				case left < bestLeft || a != best.Attempt || bestKnown && !known:
					continue
				case known && !bestKnown:
				case there > bestThere:
					continue
				case there == bestThere && sites[s].Free <= sites[best.Site].Free:
					continue
				}
				best, found = Choice{a, s}, true
			}
		}
		if !found {
			break
		}
		taken[best.Attempt] = true
		sites[best.Site].Free--
		p.Speculative++
		chosen = append(chosen, best)
	}
	return chosen
}

func TestChooseLikeSimple(t *testing.T) {
	chosen := 0
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		few := func() time.Duration { return time.Duration(rnd.IntN(40)) * sec }
		times := func() history.Sum {
			n := rnd.IntN(3)
			return sum(n, time.Duration(n)*few())
		}
		p := Phase{Tasks: 1 + rnd.IntN(50), Running: rnd.IntN(20), Speculative: rnd.IntN(3), Deviation: rnd.Float64() / 2, Before: time.Duration(rnd.IntN(3)) * sec}
		attempts, sites := make([]Attempt, rnd.IntN(8)), make([]Site, rnd.IntN(5))
		for i := range attempts {
			attempts[i] = Attempt{Age: few(), Done: float64(rnd.IntN(5)) / 4, There: times()}
			p.Ended.Tasks += attempts[i].There.Tasks
			p.Ended.Took += attempts[i].There.Took
		}
		for i := range sites {
			sites[i] = Site{Free: rnd.IntN(3), There: times()}
			p.Ended.Tasks += sites[i].There.Tasks
			p.Ended.Took += sites[i].There.Took
		}
		r := Rules{Threshold: float64(rnd.IntN(3)), RunningShare: rnd.Float64() / 4, TotalShare: rnd.Float64() / 20, AtLeast: rnd.IntN(4)}
		never := rnd.Uint64()
		allowed := func(a, s int) bool { return never>>(5*a+s)&1 == 0 }
		got, want := Choose(&p, r, attempts, sites, allowed), chooseSimply(p, r, attempts, sites, allowed)
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: chose %v, want %v", seed, got, want)
		}
		chosen += len(got)
	}
	if chosen == 0 {
		t.Error("no attempt was ever chosen")
	}
}
