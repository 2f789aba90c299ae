package membound

import (
	"fmt"
	"testing"
)

// recorder is a test that notes failures.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

var kept []byte

func TestCheck(t *testing.T) {
	bound := Bound{Free: 64 << 10, PerByte: 16}
	calls := 0
	for size, want := range map[int]bool{1 << 20: true, 1 << 10: false} {
		r := new(recorder)
		bound.Check(r, 100, func() { kept, calls = make([]byte, size), calls+1 })
		if (r.failed != "") != want {
			t.Errorf("%d bytes: %q", size, r.failed)
		}
	}
	if calls != attempts+1 {
		t.Errorf("measured %d times", calls)
	}
	once := new(recorder)
	noisy := true // as if another goroutine allocated memory during the first attempt
	bound.Check(once, 100, func() {
		if noisy {
			kept, noisy = make([]byte, 1<<20), false
		}
	})
	if once.failed != "" {
		t.Error(once.failed)
	}
}
