package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestWhatIf: a mix of few jobs has a row for each value.
func TestWhatIf(t *testing.T) {
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = (&tool{stdout: &out, stderr: &errs}).main(context.Background(), append([]string{"whatif"}, args...))
		return code, out.String(), errs.String()
	}
	code, out, errs := run("-jobs", "2", "-seeds", "1")
	if code != exitDone || errs != "" || !strings.Contains(out, "| mean response |") || !strings.Contains(out, "of 1 |") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
	for _, bad := range [][]string{{"x"}, {"-jobs", "1"}, {"-often"}} {
		if code, _, errs := run(bad...); code != exitUsage || !strings.Contains(errs, "mrsim whatif") {
			t.Errorf("%v: exit code %d: %s", bad, code, errs)
		}
	}
	if code, out, _ := run("-h"); code != exitDone || !strings.Contains(out, "usage: mrsim whatif") {
		t.Errorf("help: exit code %d: %s", code, out)
	}
}
