package disks

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestOlderOutput: this build can use a map output of an older build. An output of a later
// build is refused with a clear error. Files of testdata/older never change.
func TestOlderOutput(t *testing.T) {
	text, err := os.ReadFile("testdata/older/map-1.txt")
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string][]byte) // each line has the name of a file and some of its bytes
	for line := range strings.Lines(string(text)) {
		name, part, _ := strings.Cut(strings.TrimSpace(line), " ")
		data, err := hex.DecodeString(part)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = append(files[name], data...)
	}
	attempt := wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{Start: 1700000000000, N: 1}, Kind: wire.Map, N: 3}, N: 1000}
	for _, c := range []struct {
		file string
		at   int // index of the byte that differs in a later build
		want string
	}{
		{"", 0, ""},
		{core.OutputFile, 7, `begins with "QSEG\x00\x00\x00!", not as a segment file`},
		{core.ReportFile, 4, "unknown message number: 38"},
	} {
		leftover := Leftover{Dir: t.TempDir(), Attempt: attempt}
		for name, data := range files {
			if data = bytes.Clone(data); name == c.file {
				data[c.at] += 32
			}
			if err := os.WriteFile(filepath.Join(leftover.Dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		report, err := leftover.Verify(t.Context())
		switch {
		case c.want == "" && (err != nil || report.Result.Output.Tracker != "tt1" || report.Result.Output.Map != 3):
			t.Errorf("%+v, %v", report, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
