package pastplans

import (
	"testing"

	"pgregory.net/rapid"
)

// TestLog compares a Log with a list of all samples: it has what held in the last minutes, unless that are too many
// entries.
func TestLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 40
		l := Log{most: most}
		var all []*Sample
		at := int64(1_000_000)
		for range rapid.IntRange(1, 60).Draw(t, "plans") {
			at += rapid.Int64Range(0, 120_000).Draw(t, "after")
			s := &Sample{At: at, Entries: make([]Entry, rapid.IntRange(0, 15).Draw(t, "jobs"))}
			if !l.Due(at) {
				continue
			}
			l.Add(s)
			all = append(all, s)
		}
		v := l.View()
		entries := 0
		for i, s := range v.Samples {
			entries += len(s.Entries)
			if i > 0 && (s.At < v.Samples[i-1].At+Every.Milliseconds() || len(s.Entries)+len(v.Samples[i-1].Entries) == 0) {
				t.Fatalf("samples at %d and %d, with %d and %d entries", v.Samples[i-1].At, s.At, len(v.Samples[i-1].Entries), len(s.Entries))
			}
		}
		if entries > most && len(v.Samples) > 1 {
			t.Fatalf("%d entries, at most %d are kept", entries, most)
		}
		for when := at - Span.Milliseconds(); when <= at; when += 10_000 {
			if when < v.Since {
				continue
			}
			if got, want := entriesAt(v.Samples, when), entriesAt(all, when); got != want {
				t.Fatalf("%d ms before the end the log has %d entries, want %d; it is complete since %d", at-when, got, want, v.Since)
			}
		}
	})
}

// entriesAt counts the entries that hold at a time.
func entriesAt(samples []*Sample, when int64) (n int) {
	for _, s := range samples {
		if s.At <= when {
			n = len(s.Entries)
		}
	}
	return n
}
