package core

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestFailureText: a reason names the attempt and its tracker, and has room for
// the end of its log however long the cause is.
func TestFailureText(t *testing.T) {
	id := wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{Start: 1, N: 2}, Kind: wire.Map, N: 3}, N: 1000}
	logged := strings.Repeat("a line of its log\n", 200) + "the last line\n"
	for _, cause := range []string{"", "no space", strings.Repeat("very long ", 1<<17)} {
		text := newFailure("t7", id, &wire.Result{Error: cause, Log: logged}).String()
		if !strings.HasPrefix(text, "attempt_1_0002_m_000003_1000 on tracker t7: ") || !strings.HasSuffix(text, "\nthe last line") {
			t.Errorf("cause of %d bytes: %.100q … %q", len(cause), text, text[max(len(text)-40, 0):])
		}
		if len(text) > maxReason-500 {
			t.Errorf("cause of %d bytes: a text of %d leaves no room for the job's and the task's names", len(cause), len(text))
		}
	}
}
