package runtime

import (
	"testing"
	"time"
)

// TestStretch: it grows with the time in which threads wait, and is not known if threads have ended.
func TestStretch(t *testing.T) {
	ran, waited := runDelay()
	if ran < 0 || waited < 0 {
		t.Errorf("ran %v, waited %v", ran, waited)
	}
	if s := stretch(ran+time.Hour, waited); s != 0 {
		t.Errorf("stretch %v after an hour of threads that have ended", s)
	}
	if s := stretch(0, 0); s != 0 && s < 1 {
		t.Errorf("stretch %v since the start", s)
	}
}
