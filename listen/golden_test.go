package listen

import (
	"testing"

	"github.com/quernmr/quern/internal/golden"
)

// TestGolden pins the form of an error.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/golden/json.txt", map[string]golden.Record{"problem": golden.OfJSON(new(problem))})
}
