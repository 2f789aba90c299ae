package audit

import (
	"testing"

	"github.com/quernmr/quern/internal/golden"
)

// TestGolden pins the form of a line.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/golden/json.txt", map[string]golden.Record{"line": golden.OfJSON(new(Event))})
}
