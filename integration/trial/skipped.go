package trial

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/runtime"
)

// ReadSkipped reads the skipped records of a job from its directory for them, by task.
func ReadSkipped(t *testing.T, dir string) (all []runtime.SkippedRecord) {
	t.Helper()
	files, _ := filepath.Glob(dir + "/task_*")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			var r runtime.SkippedRecord
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%s: %q: %v", file, line, err)
			}
			all = append(all, r)
		}
	}
	return all
}
