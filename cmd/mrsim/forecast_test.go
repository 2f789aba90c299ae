package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestForecast: a mix of few jobs has a row for each fraction of their lives.
func TestForecast(t *testing.T) {
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = (&tool{stdout: &out, stderr: &errs}).main(context.Background(), append([]string{"forecast"}, args...))
		return code, out.String(), errs.String()
	}
	code, out, errs := run("-jobs", "3", "-seeds", "1", "-schedulers", "fifo")
	if code != exitDone || errs != "" || strings.Count(out, "| fifo | 3 all |") != 3 {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
	for _, bad := range [][]string{{"x"}, {"-jobs", "0"}, {"-again", "-1"}, {"-often"}} {
		if code, _, errs := run(bad...); code != exitUsage || !strings.Contains(errs, "mrsim forecast") {
			t.Errorf("%v: exit code %d: %s", bad, code, errs)
		}
	}
	if code, out, _ := run("-h"); code != exitDone || !strings.Contains(out, "usage: mrsim forecast") {
		t.Errorf("help: exit code %d: %s", code, out)
	}
}
