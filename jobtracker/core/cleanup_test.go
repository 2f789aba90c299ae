package core

import "testing"

// TestWithCleanup: the cause of a job's end is not repeated if its cleanup fails for the same one.
func TestWithCleanup(t *testing.T) {
	const reason = "attempt_1_0001_s_000000_0 on tracker t1: output file:///x: no"
	for cleanup, want := range map[string]string{
		"task_1_0001_x_000000 failed 4 times, first attempt_1_0001_x_000000_0 on tracker t1: output file:///x: no": reason,
		"attempt_1_0001_x_000000_0 on tracker t1: another":                                                         reason + "\ncleaning up: attempt_1_0001_x_000000_0 on tracker t1: another",
	} {
		if got := withCleanup(reason, cleanup); got != want {
			t.Errorf("after %q: %q", cleanup, got)
		}
	}
}
