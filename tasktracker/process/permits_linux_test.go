package process

import (
	"os"
	"testing"
)

// TestPermitsExecution: a file without the permission takes the place of one that a security module
// forbids to execute.
func TestPermitsExecution(t *testing.T) {
	for mode, want := range map[os.FileMode]bool{0o400: false, 0o500: true} {
		name := t.TempDir() + "/file"
		if err := os.WriteFile(name, []byte("\x7fELF"), mode); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got := PermitsExecution(f); got != want {
			t.Errorf("execution of a file with mode %v is permitted: %v", mode, got)
		}
	}
}
