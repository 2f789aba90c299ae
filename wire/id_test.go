package wire

import (
	"cmp"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

var (
	randomJob = rapid.Custom(func(t *rapid.T) JobID {
		return JobID{Start: rapid.Int64Range(0, 1<<50).Draw(t, "start"), N: rapid.IntRange(1, 1<<40).Draw(t, "n")}
	})
	randomTask = rapid.Custom(func(t *rapid.T) TaskID {
		return TaskID{Job: randomJob.Draw(t, "job"), Kind: Kind(rapid.IntRange(1, 6).Draw(t, "kind")), N: rapid.IntRange(0, 1<<40).Draw(t, "n")}
	})
	randomAttempt = rapid.Custom(func(t *rapid.T) AttemptID {
		return AttemptID{Task: randomTask.Draw(t, "task"), N: rapid.IntRange(0, 1<<40).Draw(t, "n")}
	})
)

func TestIDsParseAsPrinted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := randomAttempt.Draw(t, "id")
		attempt, errA := ParseAttemptID(id.String())
		task, errT := ParseTaskID(id.Task.String())
		job, errJ := ParseJobID(id.Task.Job.String())
		flow, errF := ParseFlowID(FlowID(id.Task.Job).String())
		if err := errors.Join(errA, errT, errJ, errF); err != nil || attempt != id || task != id.Task || job != id.Task.Job || flow != FlowID(job) {
			t.Fatalf("%v read as %v, %v, %v, %v: %v", id, attempt, task, job, flow, err)
		}
	})
}

func TestIDsCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := rapid.Custom(func(t *rapid.T) AttemptID {
			n := rapid.IntRange(0, 2)
			return AttemptID{
				Task: TaskID{Job: JobID{Start: int64(n.Draw(t, "start")), N: n.Draw(t, "job")}, Kind: Kind(n.Draw(t, "kind")), N: n.Draw(t, "task")},
				N:    n.Draw(t, "attempt"),
			}
		})
		a, b := small.Draw(t, "a"), small.Draw(t, "b")
		want := cmp.Or(
			cmp.Compare(a.Task.Job.Start, b.Task.Job.Start), cmp.Compare(a.Task.Job.N, b.Task.Job.N),
			cmp.Compare(a.Task.Kind, b.Task.Kind), cmp.Compare(a.Task.N, b.Task.N), cmp.Compare(a.N, b.N))
		if got := a.Compare(b); got != want || (got == 0) != (a == b) {
			t.Fatalf("%v against %v: %d, want %d", a, b, got, want)
		}
	})
}

func TestIDTexts(t *testing.T) {
	id := AttemptID{Task: TaskID{Job: JobID{Start: 1754000000000, N: 1}, Kind: Map, N: 3}, N: 1000}
	if got, want := id.String(), "attempt_1754000000000_0001_m_000003_1000"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := id.Task.String(), "task_1754000000000_0001_m_000003"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := (AttemptID{Task: TaskID{Kind: 200}}).String(), "attempt_0_0000_?_000000_0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, text := range []string{
		"", "job", "job_", "job_1", "job_1_", "job__1", "job_1_0000", "job_1_1", "job_01_0001", "job_+1_0001", "job_-1_0001", "job_1_0001_",
		"job_1_0001 ", "Job_1_0001", "job_99999999999999999999_0001", "job_1_00001", "job_1_0x01", "job_1_0001/../x",
		"task_1_0001_m_000003", "attempt_1_0001_m_000003_1000",
	} {
		if id, err := ParseJobID(text); !errors.Is(err, ErrBadID) {
			t.Errorf("ParseJobID(%q) = %v, %v", text, id, err)
		}
	}
	for _, text := range []string{"", "flow", "flow_", "flow_1", "flow_1_1", "flow_1_0000", "flow_1_0001_", "job_1_0001", "flow_job_1_0001"} {
		if id, err := ParseFlowID(text); !errors.Is(err, ErrBadID) {
			t.Errorf("ParseFlowID(%q) = %v, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"", "task", "task_1_0001", "task_1_0001_m", "task_1_0001_m_3", "task_1_0001_?_000003", "task_1_0001__000003", "task_1_0001_mm_000003",
		"task_1_0001_m_-00003", "task_1_0001_m_000003_1", "job_1_0001_m_000003",
	} {
		if id, err := ParseTaskID(text); !errors.Is(err, ErrBadID) {
			t.Errorf("ParseTaskID(%q) = %v, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"", "attempt", "attempt_1_0001_m_000003", "attempt_1_0001_m_000003_", "attempt_1_0001_m_000003_-1", "attempt_1_0001_m_000003_01",
		"attempt_1_0001_m_000003_+1", "task_1_0001_m_000003_1000",
	} {
		if id, err := ParseAttemptID(text); !errors.Is(err, ErrBadID) {
			t.Errorf("ParseAttemptID(%q) = %v, %v", text, id, err)
		}
	}
}

func FuzzParseIDs(f *testing.F) {
	f.Add("job_1754000000000_0001")
	f.Add("task_1754000000000_0001_m_000003")
	f.Add("attempt_1754000000000_0001_r_000003_2001")
	f.Fuzz(func(t *testing.T, s string) {
		membound.Bound{Free: 1 << 20, PerByte: 16}.Check(t, len(s), func() { // any result is fine
			ParseJobID(s)
			ParseTaskID(s)
			ParseAttemptID(s)
		})
		if id, err := ParseJobID(s); err == nil && id.String() != s {
			t.Errorf("%q read as %v", s, id)
		}
		if id, err := ParseTaskID(s); err == nil && id.String() != s {
			t.Errorf("%q read as %v", s, id)
		}
		if id, err := ParseAttemptID(s); err == nil && id.String() != s {
			t.Errorf("%q read as %v", s, id)
		}
	})
}
