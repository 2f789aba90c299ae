package core

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestAlarmsLikeSimple tests that alarms come in order and once, compared with a sorted list.
func TestAlarmsLikeSimple(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x alarms
		var simple []alarm
		far := rapid.Bool().Draw(t, "far")
		for n := range rapid.IntRange(1, 8*alarmChunk).Draw(t, "steps") {
			if n%5 == 4 && len(simple) > 0 {
				if at := x.next(); at != simple[0].at || x.chunks[0][0] != simple[0] {
					t.Fatalf("the next alarm is at %v, want %+v", at, simple[0])
				}
				x.pop()
				simple = simple[1:]
				continue
			}
			a := alarm{time.Duration(n * 7919 % 50), n * 104729 % 37}
			if far {
				a.at = time.Duration(n)
			}
			x.add(a)
			if i, found := slices.BinarySearchFunc(simple, a, func(x, y alarm) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.job, y.job)) }); !found {
				simple = slices.Insert(simple, i, a)
			}
		}
		if all := slices.Concat(x.chunks...); !slices.Equal(all, simple) || x.len() != len(simple) {
			t.Fatalf("%d alarms are left, want %d", len(all), len(simple))
		}
		for _, chunk := range x.chunks {
			if len(chunk) == 0 || len(chunk) >= 2*alarmChunk {
				t.Fatalf("a chunk has %d alarms", len(chunk))
			}
		}
	})
}
