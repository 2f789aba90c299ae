package core

import (
	"testing"
	"unsafe"
)

// TestSizes tests that attempts and maps fill whole cache lines of 64 bytes: a Step may look at very
// many, and a larger one would share its lines with others.
func TestSizes(t *testing.T) {
	if got := unsafe.Sizeof(attempt{}); got != 128 {
		t.Errorf("an attempt has %d bytes, want 128", got)
	}
	if got := unsafe.Sizeof(mapTask{}); got != 64 {
		t.Errorf("a map has %d bytes, want 64", got)
	}
}
