package core

import (
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestSpent: one attempt that failed is not told of as of several.
func TestSpent(t *testing.T) {
	task := wire.TaskID{Job: wire.JobID{Start: 7, N: 1}, Kind: wire.Map, N: 3}
	first := &failure{attempt: wire.AttemptID{Task: task, N: 1000}, tracker: "t1", cause: "boom"}
	for n, want := range map[int]string{
		1: "task_7_0001_m_000003 failed: attempt_7_0001_m_000003_1000 on tracker t1: boom",
		2: "task_7_0001_m_000003 failed 2 times, first attempt_7_0001_m_000003_1000 on tracker t1: boom",
	} {
		if got := (&mishaps{first: first, failed: make([]int, n)}).spent(task); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
