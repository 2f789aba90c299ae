package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

const second = time.Second

// warmTasks returns tasks that took so many seconds without the start of a process.
func warmTasks(seconds ...float64) Measured {
	var m Measured
	for _, s := range seconds {
		m.count(Duration(s), false)
	}
	return m
}

// coldTasks returns tasks that include the start of a process.
func coldTasks(seconds ...float64) Measured {
	var m Measured
	for _, s := range seconds {
		m.count(Duration(s), true)
	}
	return m
}

// past is what is usual for a name after a run with these tasks.
func past(seconds ...float64) history.Usual { return history.Usual{}.After(sumOf(seconds...), 0) }

func sumOf(seconds ...float64) *history.Sum {
	m := warmTasks(seconds...)
	return &m.All
}

var earlier = wire.JobID{Start: 1, N: 7}

// closeTo reports whether two times differ by a microsecond at most, since floats round.
func closeTo(a, b time.Duration) bool { return (a - b).Abs() <= time.Microsecond }

func TestTask(t *testing.T) {
	of := "history of " + earlier.String()
	known := func(m Measured, u history.Usual) TaskTimes { return TaskTimes{Measured: m, Past: u, PastOf: earlier} }
	for _, c := range []struct {
		name      string
		known     TaskTimes
		warmUp    time.Duration
		least     time.Duration
		most      time.Duration
		deviation float64
		source    string
	}{
		{"nothing", TaskTimes{}, 0, 0, 0, 0, ""},
		{"nothing, and processes start slowly", TaskTimes{}, second, 0, 0, 0, ""},
		{"history only", known(Measured{}, past(4, 4, 4, 4)), 0, 4 * second, 4 * second, leastDeviation, of},
		{"measured only, two", TaskTimes{Measured: warmTasks(2, 4)}, 0, 3 * second, 3 * second, 0.3, "measured"},
		{"measured only, three", TaskTimes{Measured: warmTasks(2, 2, 2)}, 0, 2 * second, 2 * second, 0.232, "measured"},
		{"only cold, without the start", TaskTimes{Measured: coldTasks(5, 5, 5)}, second, 4 * second, 4 * second, 0.232, "measured"},
		{"only cold, at least a third", TaskTimes{Measured: coldTasks(3, 3, 3)}, 10 * second, second, second, 0.232, "measured"},
		{"no time measured", TaskTimes{Measured: warmTasks(0)}, 0, minTaskTime, minTaskTime, 0.3, "measured"},
		{"both", known(warmTasks(10, 10), past(5, 4, 6)), 0, 55 * second / 10, 8 * second, 0.22, "measured, and " + of},
		{"both, many measured tasks count most", known(warmTasks(10, 10, 10, 10, 10, 10, 10, 10, 10, 10), past(4)), 0, 9 * second, 10 * second, 0.1, "measured"},
	} {
		got := c.known.Task(c.warmUp)
		if got.Time < c.least-time.Microsecond || got.Time > c.most+time.Microsecond || math.Abs(got.Deviation-c.deviation) > 0.03 || got.Source != c.source || got.Error < 0 || got.Error > 1 {
			t.Errorf("%s: %+v, want %v to %v, deviation %v, %s", c.name, got, c.least, c.most, c.deviation, c.source)
		}
	}
}

// TestTaskError: the error of the mean is smaller with more tasks, and with history.
func TestTaskError(t *testing.T) {
	last := 1.0
	for _, tasks := range []int{1, 2, 4, 8, 16} {
		k := TaskTimes{Measured: measuredTasks(tasks, 10, 0.3)}
		alone := k.Task(0).Error
		k.Past = past(9, 10, 11)
		both := k.Task(0).Error
		if alone >= last || both >= alone {
			t.Errorf("%d tasks: error %.3f, with history %.3f, with fewer tasks %.3f", tasks, alone, both, last)
		}
		last = alone
	}
}

func TestMean(t *testing.T) {
	var m Mean
	if got := m.Task(); got != (Task{second, defaultDeviation, guessError, sourceDefault}) || m.HasJobs() {
		t.Errorf("no job: %+v", got)
	}
	m.Add(0)
	if m.HasJobs() {
		t.Error("a job with unknown time counts")
	}
	m.Add(2 * second)
	m.Add(8 * second)
	got := m.Task()
	if (got.Time-4*second).Abs() > time.Millisecond || got.Source != sourceOthers {
		t.Errorf("two jobs: %+v, want their geometric mean", got)
	}
	for range 40 {
		m.Add(4 * second)
	}
	if equal := m.Task(); equal.Error >= got.Error/2 {
		t.Errorf("jobs with equal tasks: error %.3f, with two different ones %.3f", equal.Error, got.Error)
	}
}

func TestWork(t *testing.T) {
	for _, c := range []struct {
		name  string
		phase Phase
		whole time.Duration
		want  float64
	}{
		{"nothing known", Phase{TasksLeft: 5}, 0, 0},
		{"none run", Phase{TasksLeft: 5}, 2 * second, 10},
		{"done", Phase{}, 2 * second, 0},
		// three wait, one has 6 s left, one has run longer than estimated and has a tenth left
		{"some run", Phase{TasksLeft: 5, Running: 2, Ages: []time.Duration{4 * second, 12 * second}}, 10 * second, 30 + 6 + 1},
		{"one is still starting its process", Phase{TasksLeft: 1, Running: 1, Ages: []time.Duration{-second}}, 10 * second, 11},
		{"no ages", Phase{TasksLeft: 5000, Running: 4999}, 2 * second, 2 + 4999},
		{"more run than are left", Phase{TasksLeft: 1, Running: 2, Ages: []time.Duration{0, 0}}, second, 2},
	} {
		if got := c.phase.Work(c.whole); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}

func TestCorrect(t *testing.T) {
	run := func(m Measured, ages ...time.Duration) Phase {
		return Phase{TaskTimes: TaskTimes{Measured: m}, TasksLeft: len(ages), Running: len(ages), Ages: ages}
	}
	for _, c := range []struct {
		name        string
		phase       Phase
		task        Task
		least, most time.Duration
	}{
		{"nothing known", run(Measured{}, second), Task{}, 0, 0},
		{"none runs", run(warmTasks(2)), Task{2 * second, 0.3, 0.3, sourceMeasured}, 2 * second, 2 * second},
		{"no ages", Phase{TaskTimes: TaskTimes{Measured: warmTasks(2)}, Running: 5000}, Task{2 * second, 0.3, 0.3, sourceMeasured}, 2 * second, 2 * second},
		{"a constant, and the oldest is young", run(Measured{}, second/4), Task{second, 0.3, guessError, sourceDefault}, second, second},
		{"a constant, and the oldest is half done", run(Measured{}, second, 3*second), Task{second, 0.3, guessError, sourceDefault}, 6 * second, 6 * second},
		{"the time of its maps, and the oldest is half done", run(Measured{}, 3*second), Task{second, 0.3, guessError, sourceMaps}, 6 * second, 6 * second},
		{"history, and the oldest is not too old", run(Measured{}, second/2), Task{second, 0.3, 0.15, "history of a job"}, 98 * second / 100, 105 * second / 100},
		{"history, and the oldest is too old", run(Measured{}, 2*second), Task{second, 0.3, 0.3, "history of a job"}, 14 * second / 10, 18 * second / 10},
		{"many have ended", run(warmTasks(2, 2, 2, 2, 2), 10*second), Task{2 * second, 0.3, 0.1, sourceMeasured}, 2 * second, 2 * second},
		{"a machine paused", run(warmTasks(2), 1000*second), Task{2 * second, 0.3, 0.1, sourceMeasured}, 3 * second, 3 * second},
		// An age of 0 has no information: the task counts with the mean.
		{"one has just begun", run(warmTasks(2, 2), 0), Task{2 * second, 0.05, 0.05, sourceMeasured}, 2 * second, 2 * second},
		{"one starts its process", run(warmTasks(2, 2), -second), Task{2 * second, 0.05, 0.05, sourceMeasured}, 2 * second, 2 * second},
	} {
		if got := c.phase.Correct(c.task); got.Time < c.least-time.Microsecond || got.Time > c.most+time.Microsecond {
			t.Errorf("%s: %v, want %v to %v", c.name, got.Time, c.least, c.most)
		}
	}
	young, old := run(warmTasks(2, 2), second/10), run(warmTasks(2, 2), 2*second, 2*second, 2*second)
	task := Task{2 * second, 0.3, 0.2, sourceMeasured}
	if a, b := young.Correct(task).Error, old.Correct(task).Error; b >= a {
		t.Errorf("running tasks with usual ages say as little about the mean as one that has begun: errors %.3f and %.3f", b, a)
	}
}

// TestCorrectFindsTheMean begins tasks together and ends the short ones. Their mean is too small;
// the corrected mean must be close to the mean of all.
func TestCorrectFindsTheMean(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const tasks, runs, mean, deviation = 40, 200, 10.0, 0.3
	var plain, corrected float64
	for range runs {
		p := Phase{}
		for range tasks {
			if x := mean * (1 + deviation*rnd.NormFloat64()); x < mean {
				p.count(Duration(x), false)
			} else {
				p.Running++
				p.Ages = append(p.Ages, 10*second)
			}
		}
		p.TasksLeft = p.Running
		task := p.Task(0)
		task.Deviation = deviation
		plain += task.Time.Seconds() / runs
		corrected += p.Correct(task).Time.Seconds() / runs
	}
	if plain > 0.85*mean || corrected < 0.93*mean || corrected > 1.05*mean {
		t.Errorf("the mean is %v, corrected %.2f, uncorrected %.2f", mean, corrected, plain)
	}
}

func TestDuration(t *testing.T) {
	for seconds, want := range map[float64]time.Duration{
		1.5: 3 * second / 2, 0: 0, 1e300: 1e9 * second, math.Inf(1): 1e9 * second,
	} {
		if got := Duration(seconds); got != want {
			t.Errorf("%v seconds are %v, want %v", seconds, got, want)
		}
	}
	if got := Duration(math.NaN()); got != 1e9*second {
		t.Errorf("NaN seconds are %v", got)
	}
}
