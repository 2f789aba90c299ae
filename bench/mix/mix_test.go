package mix

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

// TestDrawMix: a seed always gives the same mix, in order of arrival, and each seed another one.
func TestDrawMix(t *testing.T) {
	type drawn struct {
		name string
		at   int64
	}
	draw := func(seed uint64) (all []drawn) {
		for _, a := range drawMix(seed) {
			all = append(all, drawn{a.name, int64(a.at)})
		}
		return all
	}
	for seed := range uint64(20) {
		mix := draw(seed)
		if len(mix) != arrivals || mix[0].at != 0 || !reflect.DeepEqual(mix, draw(seed)) || reflect.DeepEqual(mix, draw(seed+1)) {
			t.Fatalf("seed %d: %v, then %v; the next: %v", seed, mix, draw(seed), draw(seed+1))
		}
		for i, a := range mix[1:] {
			if a.at <= mix[i].at {
				t.Errorf("seed %d: %v is before %v", seed, a, mix[i])
			}
		}
	}
}

// TestWholeLines: pieces fit into blocks, end with a line, and together are the whole content.
func TestWholeLines(t *testing.T) {
	content := []byte(strings.Repeat("a line of a table|\n", 2*block/10) + "the last one")
	pieces := 0
	for rest := content; len(rest) > 0; pieces++ {
		piece := wholeLines(rest)
		rest = rest[len(piece):]
		if len(piece) == 0 || len(piece) > block || len(rest) > 0 && !bytes.HasSuffix(piece, []byte("\n")) {
			t.Fatalf("piece %d has %d bytes and ends with %q", pieces, len(piece), piece[max(0, len(piece)-5):])
		}
		if !bytes.HasPrefix(content[len(content)-len(rest)-len(piece):], piece) {
			t.Fatalf("piece %d does not continue the content", pieces)
		}
	}
	if want := len(content)/block + 1; pieces != want {
		t.Errorf("%d pieces, want %d", pieces, want)
	}
}
