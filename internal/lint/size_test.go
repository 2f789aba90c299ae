package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxProgram limits the bytes of a small job program without symbols. Each job's program is uploaded and
// copied to task trackers.
const maxProgram = 20 << 20

// TestProgramSize: what authors import stays small.
func TestProgramSize(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	program := filepath.Join(t.TempDir(), "wordcount")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, module+"/examples/wordcount")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxProgram {
		t.Errorf("the program of examples/wordcount has %d bytes, at most %d: see which package of mapreduce imports more", info.Size(), maxProgram)
	}
}
