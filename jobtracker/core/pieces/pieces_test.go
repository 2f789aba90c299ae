package pieces

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// counted is a work of so many entries.
type counted struct {
	left  int
	trace *[]*counted
}

func (c *counted) Advance(budget int) (int, bool) {
	n := min(c.left, budget)
	c.left -= n
	*c.trace = append(*c.trace, c)
	return n, c.left == 0
}

// TestList tests that a list spends no more than its budget, that works take turns, and that no
// piece is lost.
func TestList(t *testing.T) {
	var trace []*counted
	a, b := &counted{25, &trace}, &counted{12, &trace}
	var l List
	l.Add(a)
	l.Add(b)
	l.Add(a)
	if l.Len() != 2 {
		t.Fatalf("%d works, want 2", l.Len())
	}
	for _, want := range []int{10, 10, 10, 7} {
		if spent := l.Advance(10); spent != want {
			t.Fatalf("a piece of %d entries, want %d", spent, want)
		}
	}
	if want := []*counted{a, b, a, b, a}; !slices.Equal(trace, want) || l.Len() != 0 {
		t.Errorf("the works took other turns, or %d of them are left", l.Len())
	}
	l.Add(&counted{3, &trace})
	rest := &counted{30, &trace}
	l.Add(rest)
	if spent := l.Finish(rest) + l.Finish(rest); spent != 30 || rest.left != 0 || l.Len() != 1 {
		t.Errorf("Finish handles %d entries; %d entries and %d works are left", spent, rest.left, l.Len())
	}
}

// numbers is a work that visits a set of numbers, which may change.
type numbers struct {
	round   Round
	present map[int]bool
	owed    map[int]bool // not visited since the last request
}

func (w *numbers) Advance(budget int) (spent int, done bool) {
	for {
		for n := w.round.Next(); n < 20 && w.round.Visits(n); n++ {
			if !w.present[n] {
				continue
			}
			if spent == budget {
				return spent, false
			}
			spent++
			delete(w.owed, n)
			w.round.Visited(n)
		}
		if w.round.End() {
			return spent, true
		}
	}
}

// TestRound tests that a round visits each number that is present at a request and stays, although
// requests come and numbers are added and removed during a round.
func TestRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &numbers{present: make(map[int]bool), owed: make(map[int]bool)}
		var l List
		number := rapid.IntRange(0, 19)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) { w.present[number.Draw(t, "n")] = true },
			"remove": func(t *rapid.T) {
				n := number.Draw(t, "n")
				delete(w.present, n)
				delete(w.owed, n)
			},
			"request": func(t *rapid.T) {
				for n := range w.present {
					w.owed[n] = true
				}
				w.round.Request()
				l.Add(w)
			},
			"advance": func(t *rapid.T) {
				budget := rapid.IntRange(1, 8).Draw(t, "budget")
				if spent := l.Advance(budget); spent > budget {
					t.Fatalf("%d entries, budget %d", spent, budget)
				}
			},
			"": func(t *rapid.T) {
				if l.Len() == 0 && len(w.owed) > 0 {
					t.Fatalf("the round is over, and these were not visited: %v", w.owed)
				}
			},
		})
		for rounds := 0; l.Len() > 0; rounds++ {
			if rounds > 100 {
				t.Fatal("a round without end")
			}
			l.Advance(1)
		}
		if len(w.owed) > 0 {
			t.Fatalf("not visited: %v", w.owed)
		}
	})
}
