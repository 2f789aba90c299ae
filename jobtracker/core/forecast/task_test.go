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

// pastSums returns tasks of an earlier job.
func pastSums(seconds ...float64) *history.Sums { return &history.Sums{Sum: warmTasks(seconds...).All} }

var earlier = wire.JobID{Start: 1, N: 7}

// closeTo reports whether two times differ by a microsecond at most, since floats round.
func closeTo(a, b time.Duration) bool { return (a - b).Abs() <= time.Microsecond }

func TestTask(t *testing.T) {
	of := "history of " + earlier.String()
	for _, c := range []struct {
		name   string
		known  TaskTimes
		warmUp time.Duration
		want   Task
	}{
		{"nothing", TaskTimes{}, 0, Task{}},
		{"nothing, and processes start slowly", TaskTimes{}, second, Task{}},
		{"history only", TaskTimes{Past: pastSums(4, 4, 4, 4), PastOf: earlier}, 0, Task{4 * second, 0, of}},
		{"history without time", TaskTimes{Past: pastSums(0), PastOf: earlier}, 0, Task{minTaskTime, 0.3, of}},
		{"measured only, two", TaskTimes{Measured: warmTasks(2, 4)}, 0, Task{3 * second, 0.3, "measured"}},
		{"measured only, three", TaskTimes{Measured: warmTasks(2, 2, 2)}, 0, Task{2 * second, 0, "measured"}},
		{"only cold, without the start", TaskTimes{Measured: coldTasks(5, 5, 5)}, second, Task{4 * second, 0, "measured"}},
		{"only cold, at least a third", TaskTimes{Measured: coldTasks(3, 3, 3)}, 10 * second, Task{second, 0, "measured"}},
		{"no time measured", TaskTimes{Measured: warmTasks(0)}, 0, Task{minTaskTime, 0.3, "measured"}},
		// (2*10 + 4*4) / (2+4)
		{"both", TaskTimes{Measured: warmTasks(10, 10), Past: pastSums(4, 4, 4), PastOf: earlier}, 0, Task{6 * second, 0, "measured, and " + of}},
		{"both, four measured tasks suffice", TaskTimes{Measured: warmTasks(10, 10, 10, 10), Past: pastSums(4), PastOf: earlier}, 0, Task{10 * second, 0, "measured"}},
	} {
		if got := c.known.Task(c.warmUp); !closeTo(got.Time, c.want.Time) || math.Abs(got.Deviation-c.want.Deviation) > 1e-6 || got.Source != c.want.Source {
			t.Errorf("%s: %+v, not %+v", c.name, got, c.want)
		}
	}
}

func TestMean(t *testing.T) {
	var m Mean
	if got := m.Task(); got != (Task{second, 0.3, sourceDefault}) || m.HasJobs() {
		t.Errorf("no job: %+v", got)
	}
	m.Add(0)
	if m.HasJobs() {
		t.Error("a job with unknown time counts")
	}
	m.Add(2 * second)
	m.Add(6 * second)
	if got := m.Task(); got != (Task{4 * second, 0.3, sourceOthers}) {
		t.Errorf("two jobs: %+v", got)
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
		name  string
		phase Phase
		task  Task
		want  time.Duration
	}{
		{"nothing known", run(Measured{}, second), Task{}, 0},
		{"none runs", run(warmTasks(2)), Task{2 * second, 0.3, sourceMeasured}, 2 * second},
		{"no ages", Phase{TaskTimes: TaskTimes{Measured: warmTasks(2)}, Running: 5000}, Task{2 * second, 0.3, sourceMeasured}, 2 * second},
		{"a constant, and the oldest is young", run(Measured{}, second/4), Task{second, 0.3, sourceDefault}, second},
		{"a constant, and the oldest is half done", run(Measured{}, second, 3*second), Task{second, 0.3, sourceDefault}, 6 * second},
		{"the time of its maps, and the oldest is half done", run(Measured{}, 3*second), Task{second, 0.3, sourceMaps}, 6 * second},
		{"history, and the oldest is not too old", run(Measured{}, 15*second/10), Task{second, 0.3, "history of a job"}, second},
		{"history, and the oldest is too old", run(Measured{}, 2*second), Task{second, 0.3, "history of a job"}, 2 * second},
		{"many have ended", run(warmTasks(2, 2, 2, 2, 2), 10*second), Task{2 * second, 0.3, sourceMeasured}, 2 * second},
		{"a machine paused", run(warmTasks(2), 1000*second), Task{2 * second, 0.3, sourceMeasured}, 3 * second},
		// An age of 0 has no information: the task counts with the mean.
		{"one has just begun", run(warmTasks(2, 2), 0), Task{2 * second, 0.05, sourceMeasured}, 2 * second},
		{"one starts its process", run(warmTasks(2, 2), -second), Task{2 * second, 0.05, sourceMeasured}, 2 * second},
	} {
		if got := c.phase.Correct(c.task); !closeTo(got.Time, c.want) {
			t.Errorf("%s: %v, not %v", c.name, got.Time, c.want)
		}
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

// TestConcurrentTime compares the predicted end of the last of many tasks with simulations.
func TestConcurrentTime(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	task := Task{10 * second, 0.3, sourceMeasured}
	draw := func() float64 { return 10 * max(0.01, 1+0.3*rnd.NormFloat64()) }
	const runs = 4000
	for _, n := range []int{1, 2, 5, 20, 100} {
		sum := 0.0
		for range runs {
			longest := 0.0
			for range n {
				longest = max(longest, draw())
			}
			sum += longest / runs
		}
		if got := concurrentTime(task, n).Seconds(); math.Abs(got-sum) > 0.02*sum {
			t.Errorf("%d tasks that begin together: predicted %.2f s, simulated %.2f s", n, got, sum)
		}
		// Tasks that have run for a while: draw the rest of each, given that it still runs.
		p := Phase{TasksLeft: n, Running: n}
		for i := range n {
			p.Ages = append(p.Ages, time.Duration(i%8)*second)
		}
		sum = 0
		for range runs {
			longest := 0.0
			for _, age := range p.Ages {
				x := draw()
				for x < age.Seconds() {
					x = draw()
				}
				longest = max(longest, x-age.Seconds())
			}
			sum += longest / runs
		}
		// The prediction treats each task as the longest of n, which overestimates old tasks.
		if got := p.lastEnd(task).Seconds(); got < 0.95*sum || got > 1.2*sum {
			t.Errorf("the last of %d running tasks ends: predicted %.2f s, simulated %.2f s", n, got, sum)
		}
	}
	if p := (Phase{TasksLeft: 5000, Running: 5000}); p.lastEnd(task) != concurrentTime(task, 5000) {
		t.Error("running tasks without ages do not count as begun together")
	}
	if p := (Phase{TasksLeft: 1, Running: 1, Ages: []time.Duration{4 * second}}); p.lastEnd(Task{Time: 10 * second}) != 6*second {
		t.Error("without deviation, a task does not have the rest of the mean left")
	}
}

// TestLastTasksDelay compares the predicted delay relative to a fluid plan with simulations. Each
// free slot takes the next task.
func TestLastTasksDelay(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	task := Task{10 * second, 0.3, sourceMeasured}
	const runs, waves = 300, 20
	for _, slots := range []int{1, 2, 10, 50} {
		late := 0.0
		for range runs {
			free := make([]float64, slots)
			for i := range free { // their previous tasks end at different times
				free[i] = 10 * rnd.Float64()
			}
			fluid := 0.0
			for _, at := range free {
				fluid += at / float64(slots)
			}
			for range waves * slots {
				first := 0
				for i, at := range free {
					if at < free[first] {
						first = i
					}
				}
				x := 10 * max(0.01, 1+0.3*rnd.NormFloat64())
				free[first] += x
				fluid += x / float64(slots)
			}
			last := 0.0
			for _, at := range free {
				last = max(last, at)
			}
			late += (last - fluid) / runs
		}
		if got := lastTasksDelay(task, slots).Seconds(); math.Abs(got-late) > 2 {
			t.Errorf("%d slots: predicted delay %.2f s, simulated %.2f s", slots, got, late)
		}
	}
	if got := lastTasksDelay(Task{Time: 10 * second}, 2); got != 5*second/2 {
		t.Errorf("two slots with equal tasks: delay %v, want (2-1)/(2*2) of a task", got)
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
