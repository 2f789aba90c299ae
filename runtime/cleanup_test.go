package runtime

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// TestCleanupTwice stops cleanup at each of its calls, with or without the call's effect.
// The next cleanup must remove everything.
func TestCleanupTwice(t *testing.T) {
	for _, kind := range []string{"", "done"} {
		for i := range 30 {
			f := newData()
			tr := newTree(f)
			if err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), writeAttempt(tr, testAttempt(wire.Reduce, 0, 0), "x")); err != nil {
				t.Fatal(err)
			}
			_ = f.SetFaults(fmt.Sprintf("any ** after=%d times=1 %s", i, kind))
			if err := tr.cleanup(); err != nil {
				if err := tr.cleanup(); err != nil {
					t.Fatal(err)
				}
			}
			_ = f.SetFaults("")
			if got := listing(f, "mem://t/data"); got != "" {
				t.Fatalf("stopped at %d %s: left %s", i, kind, got)
			}
			if err := tr.cleanup(); err != nil {
				t.Fatalf("with nothing to do: %v", err)
			}
		}
	}
}

// TestDiscard removes the output of a submission after the end of its cluster, and no other one.
func TestDiscard(t *testing.T) {
	f := newData()
	tr := newTree(f)
	tr.key = "k"
	if err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), writeAttempt(tr, testAttempt(wire.Reduce, 0, 0), "x")); err != nil {
		t.Fatal(err)
	}
	made := listing(f, "mem://t/data")
	if err := Discard(f, testOut, tr.staging, "another key"); err != nil || listing(f, "mem://t/data") != made {
		t.Errorf("of another submission: %v, left %s", err, listing(f, "mem://t/data"))
	}
	for range 2 {
		if err := Discard(f, testOut, tr.staging, tr.key); err != nil || listing(f, "mem://t/data") != "" {
			t.Errorf("%v, left %s", err, listing(f, "mem://t/data"))
		}
	}
	putFile(f, dfs.Join(tr.staging, wire.StagedSubmission), nil)
	if err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), tr.commitJob(nil, noMore, func() error { return nil })); err != nil {
		t.Fatal(err)
	}
	complete := listing(f, "mem://t/data")
	if err := Discard(f, testOut, tr.staging, tr.key); err != nil || listing(f, "mem://t/data") != complete {
		t.Errorf("complete: %v, left %s", err, listing(f, "mem://t/data"))
	}
}
