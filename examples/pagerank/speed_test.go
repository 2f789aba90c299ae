package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// BenchmarkIteration runs the program on five pages. It reports the time of an iteration, with the start
// and the end of the program and of its cluster.
func BenchmarkIteration(b *testing.B) {
	dir := b.TempDir()
	program, in := filepath.Join(dir, "pagerank"), filepath.Join(dir, "in")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(in, []byte("a\tb c\nb\tc\nc\ta\nd\tc e\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	iterations := 0
	for i := 0; b.Loop(); i++ {
		out, err := exec.Command(program, "-input", in, "-output", filepath.Join(dir, "out", string(rune('a'+i%26))+string(rune('a'+i/26)))).CombinedOutput()
		if err != nil {
			b.Fatalf("%v: %s", err, out)
		}
		iterations += bytes.Count(out, []byte("succeeded"))
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(iterations), "ms/iteration")
}
