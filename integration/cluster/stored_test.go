package cluster_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/trial"
)

// TestStored: a driver keeps a binary result on a cluster, and another program reads it there. A program with other types is refused,
// and so is one that reads lines.
func TestStored(t *testing.T) {
	c := start(t, small)
	text := "b\na\nb\n"
	kept, counts := filepath.Join(c.dir, "kept"), filepath.Join(c.dir, "counts")
	c.mrsubmit("run", c.Program("driven"), "-input", c.file("in", text), "-output", kept).Succeed()
	c.mrsubmit("run", c.Program("faulty"), "-at", "stored", "-input", kept, "-output", counts).Succeed()
	checkCounts(t, counts, []byte(text))
	refused := filepath.Join(c.dir, "refused")
	c.mrsubmit("run", c.Program("faulty"), "-at", "stored", "-do", "types", "-input", kept, "-output", refused).
		Fail(1, "kept has records of string and ", ", but the program reads string and ")
	c.mrsubmit("run", c.Program("wordcount"), "-input", kept, "-output", refused).Fail(1, "kept")
}

// TestChecked: on a cluster too, quern.check finds a map that emits other records when it is run a second time, before the maps start.
func TestChecked(t *testing.T) {
	c := start(t, small)
	in, out := c.file("in", "a b\n"), filepath.Join(c.dir, "out")
	run := func(do string) *trial.Run {
		return c.mrsubmit("run", "-D", "quern.check=true", c.Program("faulty"), "-at", "map", "-do", do, "-input", in, "-output", out)
	}
	clock := run("clock")
	clock.Fail(1, "quern.check=true: job faulty, map of file://"+in, "emits something else")
	if text := clock.Stderr.String(); strings.Contains(text, "Launched map tasks") {
		t.Errorf("maps were launched:\n%s", text)
	}
	run("").Succeed()
	checkCounts(t, out, []byte("a b\n"))
}
