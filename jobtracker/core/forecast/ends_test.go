package forecast

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
)

// cluster has 4 map slots and 2 reduce slots. The time is 100 s. Jobs close in 1 s.
func cluster() Cluster {
	return Cluster{
		Now: 100 * second, Slots: [2]int{4, 2}, Overheads: Overheads{Close: second},
		Fallback: [2]Task{{5 * second, 0, 0.001, sourceOthers}, {7 * second, 0, 0.001, sourceOthers}},
	}
}

// equalTasks returns so many tasks with the same time that almost nothing is uncertain about it.
func equalTasks(seconds float64) TaskTimes {
	var one history.Sum
	for range 3 {
		one.Count(Duration(seconds))
	}
	return TaskTimes{Past: history.Usual{Seconds: seconds, Runs: 1e9, Tasks: 1e9}, PastOf: earlier, Measured: Measured{All: one, Warm: one}}
}

// job makes a job with these numbers of maps and reduces left. No task runs.
func job(n, maps, reduces int) Job {
	return Job{
		N: n, Active: true, Workers: 100,
		Phases: [2]Phase{{TaskTimes: equalTasks(10), TasksLeft: maps}, {TaskTimes: equalTasks(20), TasksLeft: reduces}},
	}
}

// showEnds formats the ends of maps, shuffle and job in seconds from now.
func showEnds(c *Cluster, f Forecast) string {
	show := func(at time.Duration) string {
		if at == Never {
			return "never"
		}
		return fmt.Sprintf("%.4g", (at - c.Now).Seconds())
	}
	var list []string
	for i := range f {
		list = append(list, show(f[i].MapsEnd)+" "+show(f[i].ShuffleEnd)+" "+show(f[i].End))
	}
	return strings.Join(list, ", ")
}

// about reports whether two texts are equal, but for numbers that differ by 5 % or 0.15: even equal tasks are a little
// uncertain, and the end is the median.
func about(got, want string) bool {
	words := func(text string) []string { return strings.Fields(strings.ReplaceAll(text, ",", " ,")) }
	x, y := words(got), words(want)
	return slices.EqualFunc(x, y, func(a, b string) bool {
		m, errM := strconv.ParseFloat(a, 64)
		n, errN := strconv.ParseFloat(b, 64)
		return a == b || errM == nil && errN == nil && math.Abs(m-n) <= max(0.15, 0.05*n)
	})
}

// TestPredict checks ends that were computed by hand; all tasks take the same time. If more than
// a wave is left, a fluid plan is too short by (slots-1)/(2*slots) of a task.
func TestPredict(t *testing.T) {
	with := func(j Job, change func(*Job)) Job { change(&j); return j }
	for _, c := range []struct {
		name    string
		cluster func(*Cluster)
		jobs    []Job
		want    string // ends of maps, shuffle, job
	}{
		{"no jobs", nil, nil, ""},
		{"all tasks have ended", nil, []Job{job(1, 0, 0)}, "0 0 1"},
		{"one wave begins", nil, []Job{job(1, 4, 0)}, "10 10 11"},
		{"part of a wave begins", nil, []Job{job(1, 3, 0)}, "10 10 11"},
		{"processes are started first", func(c *Cluster) { c.Overheads.WarmUp = 2 * second },
			[]Job{with(job(1, 4, 0), func(j *Job) { j.Workers = 3 })}, "12 12 13"},
		{"waves", nil, []Job{job(1, 12, 0)}, "33.75 33.75 34.75"}, // 30 + 3/8 of 10
		{"reduces follow", nil, []Job{job(1, 4, 2)}, "10 10 31"},
		{"all tasks run", nil, []Job{with(job(1, 2, 0), func(j *Job) {
			j.Phases[Map].Running, j.Phases[Map].Ages = 2, []time.Duration{4 * second, 7 * second}
		})}, "6 6 7"},
		{"a task runs longer than estimated", nil, []Job{with(job(1, 1, 0), func(j *Job) {
			j.Phases[Map].Running, j.Phases[Map].Ages = 1, []time.Duration{10 * second}
		})}, "0.3 0.3 1.3"},
		{"a map hangs", nil, []Job{with(job(1, 1, 0), func(j *Job) {
			j.Phases[Map].Running, j.Phases[Map].Ages, j.Phases[Map].Oldest = 1, []time.Duration{70 * second}, 70*second
		})}, "48 48 49"}, // the median
		{"a map hangs, and others have not begun", nil, []Job{with(job(1, 2, 2), func(j *Job) {
			j.Phases[Map].Running, j.Phases[Map].Ages, j.Phases[Map].Oldest = 1, []time.Duration{70 * second}, 70*second
		})}, "48 48 69"},
		{"a map hangs that has a second attempt", nil, []Job{with(job(1, 2, 0), func(j *Job) {
			j.Phases[Map].Running, j.Phases[Map].Ages, j.Phases[Map].Oldest = 2, []time.Duration{70 * second, 4 * second}, 0
		})}, "11.5 11.5 12.5"}, // tasks seem to take 15 s
		{"a reduce hangs", nil, []Job{with(job(1, 0, 1), func(j *Job) {
			j.Phases[Reduce].Running, j.Phases[Reduce].Ages, j.Phases[Reduce].Oldest = 1, []time.Duration{70 * second}, 70*second
		})}, "0 0 35"},
		{"too many running tasks", nil, []Job{with(job(1, 4, 0), func(j *Job) { j.Phases[Map].Running = 4 })}, "10 10 11"},
		{"no times are known", nil, []Job{{N: 1, Active: true, Workers: 9, Phases: [2]Phase{{TasksLeft: 4}, {TasksLeft: 2}}}}, "5 5 13"},
		{"no times are known of any job", func(c *Cluster) {
			c.Fallback = [2]Task{{3 * second, 0, 0.001, sourceDefault}, {second, 0, 0.001, sourceDefault}}
		}, []Job{{N: 1, Active: true, Workers: 9, Phases: [2]Phase{{TasksLeft: 4}, {TasksLeft: 1}}}}, "3 3 7"}, // a reduce takes as long as a map

		// With a plan in force.
		{"maps get slots in the order of the plan", nil, []Job{
			with(job(1, 4, 0), func(j *Job) { j.Rank[Map] = 2 }), with(job(2, 4, 0), func(j *Job) { j.Rank[Map] = 1 }),
		}, "22.5 22.5 23.5, 10 10 11"}, // 20 s with two slots, and 1/4 of 10 s
		{"the plan has the end of maps, and is fluid", nil, []Job{with(job(1, 4, 0), func(j *Job) { j.MapsEnd = 130 * second })}, "30 30 31"},
		{"the plan counts whole tasks", nil, []Job{with(job(1, 8, 0), func(j *Job) { j.MapsEnd, j.WholeTasks = 130*second, true })}, "30 30 31"},
		{"the plan is out of date", nil, []Job{with(job(1, 8, 0), func(j *Job) { j.MapsEnd, j.WholeTasks = 90*second, true })}, "20 20 21"},

		// Jobs that get no slots.
		{"no slots", func(c *Cluster) { c.Slots = [2]int{} }, []Job{job(1, 4, 2)}, "never never never"},
		{"no reduce slots", func(c *Cluster) { c.Slots[Reduce] = 0 }, []Job{job(1, 4, 2), job(2, 0, 0)}, "10 10 never, 0 0 1"},
		{"suspended", nil, []Job{with(job(1, 4, 2), func(j *Job) { j.Active = false }), job(2, 4, 0)}, "never never never, 10 10 11"},
		{"closing", nil, []Job{with(job(1, 0, 0), func(j *Job) { j.Closing, j.ClosingSince = true, 100*second-3*second/4 })}, "0 0 0.25"},
		{"closing for longer than usual", nil, []Job{with(job(1, 0, 0), func(j *Job) { j.Closing, j.ClosingSince = true, second })}, "0 0 0.1"},
		{"reduces get slots in the order in which they are ready", nil, []Job{
			with(job(1, 4, 2), func(j *Job) { j.Rank = [2]int{1, 0} }), with(job(2, 4, 2), func(j *Job) { j.Rank = [2]int{0, 1} }),
		}, "22.5 22.5 51, 10 10 31"}, // the reduces end at 30 and at 50
	} {
		all := cluster()
		if c.cluster != nil {
			c.cluster(&all)
		}
		if got := showEnds(&all, Predict(&all, c.jobs)); !about(got, c.want) {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
}

// TestPredictShuffles has two homes, which fetch 10 bytes a second each.
func TestPredictShuffles(t *testing.T) {
	shuffles := func(n, maps int, s Transfer) Job {
		j := job(n, maps, 0)
		j.Shuffle = s
		return j
	}
	for _, c := range []struct {
		name string
		jobs []Job
		want string
	}{
		{"all maps have ended", []Job{shuffles(1, 0, Transfer{BytesLeft: 100, Homes: 2})}, "0 5 6"},
		{"one of two homes fetches", []Job{shuffles(1, 0, Transfer{BytesLeft: 100, Homes: 1})}, "0 10 11"},
		{"no home is known yet", []Job{shuffles(1, 0, Transfer{BytesLeft: 100})}, "0 10 11"},
		{"the output of the last map is fetched after it", []Job{shuffles(1, 4, Transfer{BytesLeft: 100, Homes: 2})}, "10 11.25 12.25"},
		{"more output than homes fetch while maps run", []Job{shuffles(1, 4, Transfer{BytesLeft: 1000, Homes: 2})}, "10 50 51"},
		{"maps get no slots", []Job{func() Job { j := shuffles(1, 4, Transfer{BytesLeft: 100}); j.Active = false; return j }()}, "never never never"},
		// Equal shares: when the small shuffle ends, the large one has fetched as much.
		{"equal shares", []Job{shuffles(1, 0, Transfer{BytesLeft: 300, Homes: 2}), shuffles(2, 0, Transfer{BytesLeft: 100, Homes: 2})}, "0 20 21, 0 10 11"},
		{"in the order of the plan", []Job{
			shuffles(1, 0, Transfer{BytesLeft: 300, Homes: 2, Turn: 1}), shuffles(2, 0, Transfer{BytesLeft: 100, Homes: 2, Turn: 2}),
		}, "0 15 16, 0 20 21"},
		{"the plan has one of two", []Job{
			shuffles(1, 0, Transfer{BytesLeft: 100, Homes: 2}), shuffles(2, 0, Transfer{BytesLeft: 300, Homes: 2, Turn: 1}),
		}, "0 20 21, 0 15 16"},
	} {
		all := cluster()
		all.Bandwidth.Add(10)
		all.Bandwidth.Add(0) // counts like the other
		if got := showEnds(&all, Predict(&all, c.jobs)); !about(got, c.want) {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
		all.Bandwidth = Bandwidth{}
		for _, e := range Predict(&all, c.jobs) {
			if e.ShuffleEnd != e.MapsEnd {
				t.Errorf("%s: a shuffle of unknown speed ends %v after the maps", c.name, e.ShuffleEnd-e.MapsEnd)
			}
		}
	}
}

// TestPredictUpcoming checks that jobs begin after the jobs from which they read output.
func TestPredictUpcoming(t *testing.T) {
	upcoming := func(n, maps, reduces int, after ...int) Job {
		j := job(n, 0, 0)
		j.Active, j.Upcoming = false, &Upcoming{Tasks: [2]int{maps, reduces}, After: after}
		return j
	}
	unknown := job(2, 0, 0)
	unknown.Active = false
	for _, c := range []struct {
		name  string
		slots [2]int
		jobs  []Job
		want  string
	}{
		{"alone", [2]int{4, 2}, []Job{upcoming(1, 5, 3)}, "61"}, // 2 waves of 10 s, 2 of 20 s
		{"after a job that runs", [2]int{4, 2}, []Job{job(1, 4, 0), upcoming(2, 4, 0, 1)}, "11 22"},
		{"after the work of other jobs", [2]int{4, 2}, []Job{job(1, 8, 0), upcoming(2, 4, 0)}, "24.75 31"},
		{"after another job that has not begun", [2]int{4, 2}, []Job{upcoming(1, 4, 0), upcoming(2, 0, 2, 1)}, "11 32"},
		{"after an ended job", [2]int{4, 2}, []Job{upcoming(5, 4, 0, 3)}, "11"},
		{"after a job without a prediction", [2]int{4, 2}, []Job{unknown, upcoming(3, 4, 0, 2)}, "never never"},
		{"no map slots", [2]int{0, 2}, []Job{upcoming(1, 4, 0)}, "never"},
		{"no reduce slots", [2]int{4, 0}, []Job{upcoming(1, 4, 1), upcoming(2, 4, 0)}, "never 21"},
	} {
		all := cluster()
		all.Slots = c.slots
		var got []string
		for _, e := range Predict(&all, c.jobs) {
			if e.End == Never {
				got = append(got, "never")
				continue
			}
			got = append(got, fmt.Sprintf("%.4g", (e.End-all.Now).Seconds()))
		}
		if !about(strings.Join(got, " "), c.want) {
			t.Errorf("%s: %v, not %s", c.name, got, c.want)
		}
	}
}

func TestForecastOf(t *testing.T) {
	all := cluster()
	f := Predict(&all, []Job{job(2, 4, 0), job(5, 4, 3)})
	if e := f.Of(5); e == nil || e.N != 5 || e.TasksLeft != [2]int{4, 3} || e.Work != [2]float64{40, 60} {
		t.Errorf("job 5: %+v", e)
	}
	if f.Of(3) != nil || Forecast(nil).Of(1) != nil {
		t.Error("an unknown job has an estimate")
	}
}

func TestAlone(t *testing.T) {
	each := [2]time.Duration{10 * second, 20 * second}
	for _, c := range []struct {
		name  string
		slots [2]int
		flow  []FlowJob
		want  float64
	}{
		{"a job", [2]int{4, 2}, []FlowJob{{N: 1, Tasks: [2]int{4, 2}, Each: each}}, 30},
		{"narrower than the cluster", [2]int{40, 20}, []FlowJob{{N: 1, Tasks: [2]int{4, 2}, Each: each}}, 30},
		{"wider", [2]int{4, 2}, []FlowJob{{N: 1, Tasks: [2]int{8, 3}, Each: each}}, 50},
		{"a chain", [2]int{4, 2}, []FlowJob{{N: 1, Tasks: [2]int{4, 0}, Each: each}, {N: 2, After: []int{1}, Tasks: [2]int{4, 2}, Each: each}}, 40},
		// Each takes 10 s, but the slots need 20 s for both.
		{"side by side", [2]int{4, 2}, []FlowJob{{N: 1, Tasks: [2]int{4, 0}, Each: each}, {N: 2, Tasks: [2]int{4, 0}, Each: each}}, 20},
		{"one joins two", [2]int{8, 2}, []FlowJob{
			{N: 1, Tasks: [2]int{8, 0}, Each: each}, {N: 2, Tasks: [2]int{1, 1}, Each: each}, {N: 3, After: []int{1, 2}, Tasks: [2]int{1, 0}, Each: each},
		}, 40},
		{"no slots", [2]int{}, []FlowJob{{N: 1, Tasks: [2]int{2, 0}, Each: each}}, 20},
		{"nothing to do", [2]int{4, 2}, []FlowJob{{N: 1}}, 0},
	} {
		if got := Alone(c.slots, c.flow); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v s, not %v", c.name, got, c.want)
		}
	}
}
