package settings

import (
	"math"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/health"
	"github.com/quernmr/quern/jobtracker/core/speculation"
	"github.com/quernmr/quern/wire"
)

// TestOf checks that each property changes only its field, and that invalid values are ignored.
func TestOf(t *testing.T) {
	defaults := Settings{
		Timeout: 10 * time.Minute, Maps: TaskSettings{MaxAttempts: 4, Speculative: true}, Reduces: TaskSettings{MaxAttempts: 4, Speculative: true},
		CounterLimits: wire.CounterLimitsOf(nil), Slowstart: 0.05, SkipStart: 2, Speculation: speculation.DefaultRules,
		TrackerLimits: health.JobLimits{MaxFailures: 3, MaxPercent: 33},
	}
	if got := Of(new(wire.JobPlan)); got != defaults {
		t.Fatalf("without properties: %+v, want %+v", got, defaults)
	}
	for _, c := range []struct {
		name, value string
		change      func(*Settings) // nil: the default holds
	}{
		{"mapreduce.task.timeout", "5000", func(s *Settings) { s.Timeout = 5 * time.Second }},
		{"mapreduce.task.timeout", "0", func(s *Settings) { s.Timeout = 0 }},
		{"mapreduce.task.timeout", "9223372036854", func(s *Settings) { s.Timeout = 9223372036854 * time.Millisecond }},
		{"mapreduce.task.timeout", "9223372036855", nil},
		{"mapreduce.task.timeout", "-5", nil},
		{"quern.task.processes", "4", func(s *Settings) { s.MaxProcesses = 4 }},
		{"quern.task.processes", "many", nil},
		{"quern.task.processes", "2147483648", nil},
		{"mapreduce.job.local-fs.single-disk-limit.bytes", "4", func(s *Settings) { s.MaxLocalBytes = 4 }},
		{"mapreduce.job.local-fs.single-disk-limit.bytes", "-1", nil},
		{"mapreduce.job.local-fs.single-disk-limit.bytes", "-2", nil},
		{"mapreduce.map.memory.mb", "2", func(s *Settings) { s.Maps.MaxMemory = 2 << 20 }},
		{"mapreduce.map.memory.mb", "-1", nil},
		{"mapreduce.reduce.memory.mb", "3", func(s *Settings) { s.Reduces.MaxMemory = 3 << 20 }},
		{"mapreduce.reduce.memory.mb", "8796093022207", func(s *Settings) { s.Reduces.MaxMemory = math.MaxInt64 >> 20 << 20 }},
		{"mapreduce.reduce.memory.mb", "8796093022208", nil},
		{"mapreduce.map.cpu.vcores", "5", func(s *Settings) { s.Maps.Cores = 5 }},
		{"mapreduce.map.cpu.vcores", "-1", nil},
		{"mapreduce.reduce.cpu.vcores", "2", func(s *Settings) { s.Reduces.Cores = 2 }},
		{"mapreduce.map.maxattempts", "1", func(s *Settings) { s.Maps.MaxAttempts = 1 }},
		{"mapreduce.map.maxattempts", "0", nil},
		{"mapreduce.map.maxattempts", "1000000", func(s *Settings) { s.Maps.MaxAttempts = wire.EpochAttempts - 1 }},
		{"mapreduce.map.maxattempts", "9223372036854775808", nil},
		{"mapreduce.reduce.maxattempts", "7", func(s *Settings) { s.Reduces.MaxAttempts = 7 }},
		{"mapreduce.reduce.maxattempts", "some", nil},
		{"mapreduce.map.failures.maxpercent", "100", func(s *Settings) { s.Maps.MaxGivenUp = 100 }},
		{"mapreduce.map.failures.maxpercent", "101", nil},
		{"mapreduce.reduce.failures.maxpercent", "1", func(s *Settings) { s.Reduces.MaxGivenUp = 1 }},
		{"mapreduce.reduce.failures.maxpercent", "0.5", nil},
		{"mapreduce.task.skip.start.attempts", "1", func(s *Settings) { s.SkipStart = 1 }},
		{"mapreduce.task.skip.start.attempts", "0", nil},
		{"mapreduce.map.skip.maxrecords", "9223372036854775807", func(s *Settings) { s.Maps.MaxSkip = math.MaxInt64 }},
		{"mapreduce.map.skip.maxrecords", "-1", nil},
		{"mapreduce.reduce.skip.maxgroups", "3", func(s *Settings) { s.Reduces.MaxSkip = 3 }},
		{"mapreduce.job.counters.max", "7", func(s *Settings) { s.CounterLimits.Counters = 7 }},
		{"mapreduce.job.maxtaskfailures.per.tracker", "9", func(s *Settings) { s.TrackerLimits.MaxFailures = 9 }},
		{"mapreduce.job.maxtaskfailures.per.tracker", "0", nil},
		{"yarn.app.mapreduce.am.job.node-blacklisting.ignore-threshold-node-percent", "-1", func(s *Settings) { s.TrackerLimits.MaxPercent = -1 }},
		{"yarn.app.mapreduce.am.job.node-blacklisting.ignore-threshold-node-percent", "50", func(s *Settings) { s.TrackerLimits.MaxPercent = 50 }},
		{"yarn.app.mapreduce.am.job.node-blacklisting.ignore-threshold-node-percent", "101", nil},
		{"quern.shuffle.split", "false", func(s *Settings) { s.Classical = true }},
		{"quern.shuffle.split", "true", nil},
		{"quern.shuffle.split", "no", nil},
		{"mapreduce.job.reduce.slowstart.completedmaps", "1", func(s *Settings) { s.Slowstart = 1 }},
		{"mapreduce.job.reduce.slowstart.completedmaps", "0", func(s *Settings) { s.Slowstart = 0 }},
		{"mapreduce.job.reduce.slowstart.completedmaps", "1.5", nil},
		{"mapreduce.job.reduce.slowstart.completedmaps", "NaN", nil},
		{"mapreduce.map.speculative", "false", func(s *Settings) { s.Maps.Speculative = false }},
		{"mapreduce.map.speculative", "no", nil},
		{"mapreduce.reduce.speculative", "false", func(s *Settings) { s.Reduces.Speculative = false }},
		{"mapreduce.job.speculative.slowtaskthreshold", "2.5", func(s *Settings) { s.Speculation.Threshold = 2.5 }},
		{"mapreduce.job.speculative.slowtaskthreshold", "-1", nil},
		{"mapreduce.job.speculative.speculative-cap-running-tasks", "0.5", func(s *Settings) { s.Speculation.RunningShare = 0.5 }},
		{"mapreduce.job.speculative.speculative-cap-running-tasks", "1.5", nil},
		{"mapreduce.job.speculative.speculative-cap-total-tasks", "0", func(s *Settings) { s.Speculation.TotalShare = 0 }},
		{"mapreduce.job.speculative.speculative-cap-total-tasks", "NaN", nil},
		{"mapreduce.job.speculative.minimum-allowed-tasks", "3", func(s *Settings) { s.Speculation.AtLeast = 3 }},
		{"mapreduce.job.speculative.minimum-allowed-tasks", "-3", nil},
		{"my.own", "1", nil},
	} {
		want := defaults
		if c.change != nil {
			c.change(&want)
		}
		if got := Of(&wire.JobPlan{Properties: map[string]string{c.name: c.value}}); got != want {
			t.Errorf("%s=%s: %+v, want %+v", c.name, c.value, got, want)
		}
	}
}

func TestTasks(t *testing.T) {
	s := Settings{Maps: TaskSettings{2, 20, 1, 5, 7, false}, Reduces: TaskSettings{3, 30, 2, 6, 8, true}}
	service := TaskSettings{MaxAttempts: 4, Speculative: true}
	for kind, want := range map[wire.Kind]TaskSettings{
		wire.Map: {2, 20, 1, 5, 7, false}, wire.Reduce: {3, 30, 2, 6, 8, true},
		wire.Setup: service, wire.Commit: service, wire.Cleanup: service, wire.Fence: service,
	} {
		if got := s.ForKind(kind); got != want {
			t.Errorf("%v: %+v, want %+v", kind, got, want)
		}
	}
	s.Reduces.Speculative = false
	if s.ForKind(wire.Setup).Speculative {
		t.Error("setups may be speculative although no task may")
	}
}
