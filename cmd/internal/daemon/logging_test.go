package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// TestLogging: lines of text and JSON have the same texts for ids and durations.
func TestLogging(t *testing.T) {
	job := wire.JobID{Start: 7, N: 1}
	for _, c := range []struct{ flags, want string }{
		{"", `level=WARN msg="job ended" job=job_7_0001 elapsed=1.5s error=boom` + "\n"},
		{"-log-level warn", `level=WARN msg="job ended" job=job_7_0001 elapsed=1.5s error=boom` + "\n"},
		{"-log-level error", ""},
		{"-v", "level=DEBUG msg=more\nlevel=WARN"},
		{"-log-format json", `"level":"WARN","msg":"job ended","job":"job_7_0001","elapsed":"1.5s","error":"boom"}` + "\n"},
	} {
		var l Logging
		set := flag.NewFlagSet("x", flag.ContinueOnError)
		l.Flags(set)
		if err := set.Parse(strings.Fields(c.flags)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		log := l.Logger(&out)
		log.Debug("more")
		log.Warn("job ended", "job", job, "elapsed", 1500*time.Millisecond, "error", errors.New("boom"))
		got := ""
		for line := range strings.Lines(out.String()) {
			var object struct{ Time time.Time }
			if err := json.Unmarshal([]byte(line), &object); strings.Contains(c.flags, "json") && (err != nil || object.Time.IsZero()) {
				t.Errorf("%v: %s", err, line)
			}
			_, rest, _ := strings.Cut(line, " ") // without the time
			if strings.Contains(c.flags, "json") {
				_, rest, _ = strings.Cut(line, ",")
			}
			got += rest
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.flags, got, c.want)
		}
	}
	for flags, want := range map[string]string{"-log-format xml": "want text or json", "-log-level loud": "unknown name", "-v=false": "it takes no value"} {
		set := flag.NewFlagSet("x", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		new(Logging).Flags(set)
		if err := set.Parse(strings.Fields(flags)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", flags, err, want)
		}
	}
}
