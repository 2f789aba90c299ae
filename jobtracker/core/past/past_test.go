package past

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
	"pgregory.net/rapid"
)

// small is without attempts and keeps so many, and knows so many of the later ones.
func small(most, ring int) *Attempts { return &Attempts{maxStored: most, maxOverflow: ring} }

// ended is an attempt at a map, told apart by what it has read.
func ended(task, number int32, bytes int64) Attempt {
	return Attempt{Kind: wire.Map, Task: task, Number: int(number), Bytes: bytes, State: wire.AttemptSucceeded}
}

func lost(task, number int32) Attempt {
	return Attempt{Kind: wire.Map, Task: task, Number: int(number), State: wire.AttemptKilled, Lost: true}
}

// show is attempts as task.number:bytes, those taken for lost with an L.
func show(a *Attempt) string {
	text := fmt.Sprintf("%d.%d:%d", a.Task, a.Number, a.Bytes)
	if a.Lost {
		text += "L"
	}
	return text
}

func (x *Attempts) show() (kept, latest string) {
	var lists [2][]string
	for i := range x.stored {
		a := &x.stored[i]
		lists[0] = append(lists[0], strings.TrimRight(show(a)+" "+x.Status(a).Error, " "))
	}
	for a := range x.Latest() {
		lists[1] = append(lists[1], show(a))
	}
	return strings.Join(lists[0], ", "), strings.Join(lists[1], ", ")
}

// TestKeep: three attempts are kept, and of those that end later two are known.
func TestKeep(t *testing.T) {
	type end struct {
		attempt Attempt
		cause   string
	}
	for _, c := range []struct {
		name         string
		ends         []end
		kept, latest string
		unkept       int
	}{
		{"none", nil, "", "", 0},
		{"two tasks", []end{{ended(0, 1, 5), ""}, {ended(1, 1, 6), "no space"}}, "0.1:5, 1.1:6 no space", "1.1:6, 0.1:5", 0},
		{"told twice", []end{{ended(0, 1, 5), ""}, {ended(0, 1, 6), "no space"}}, "0.1:5", "0.1:5", 0},
		{"told twice, another between", []end{{ended(0, 1, 5), ""}, {ended(0, 2, 6), ""}, {ended(0, 1, 7), ""}}, "0.1:5, 0.2:6", "0.2:6, 0.1:5", 0},
		{"lost, then heard of", []end{{lost(0, 1), "lost"}, {ended(1, 1, 6), ""}, {ended(0, 1, 7), ""}}, "0.1:7, 1.1:6", "1.1:6, 0.1:7", 0},
		{"lost twice", []end{{lost(0, 1), "lost"}, {lost(0, 1), "lost again"}}, "0.1:0L lost again", "0.1:0L", 0},
		{"lost, another before and after", []end{
			{ended(0, 1, 5), ""}, {lost(0, 2), "lost"}, {ended(0, 3, 6), ""}, {ended(0, 2, 7), "killed"}, {ended(0, 1, 8), ""},
		}, "0.1:5, 0.2:7 killed, 0.3:6", "0.3:6, 0.2:7, 0.1:5", 0},
		{"heard of, then lost", []end{{ended(0, 1, 5), ""}, {lost(0, 1), "lost"}}, "0.1:5", "0.1:5", 0},
		{"one too many", []end{
			{ended(0, 1, 1), ""}, {ended(1, 1, 2), ""}, {ended(2, 1, 3), ""}, {ended(3, 1, 4), "no space"},
		}, "0.1:1, 1.1:2, 2.1:3", "3.1:4, 2.1:3, 1.1:2, 0.1:1", 1},
		{"three too many", []end{
			{ended(0, 1, 1), ""}, {ended(1, 1, 2), ""}, {ended(2, 1, 3), ""}, {ended(3, 1, 4), ""}, {ended(4, 1, 5), ""}, {ended(5, 1, 6), ""},
		}, "0.1:1, 1.1:2, 2.1:3", "5.1:6, 4.1:5, 2.1:3, 1.1:2, 0.1:1", 3},
		{"lost, then heard of when there is no more room", []end{
			{lost(0, 1), "lost"}, {ended(1, 1, 2), ""}, {ended(2, 1, 3), ""}, {ended(0, 1, 4), ""}, {ended(1, 1, 5), ""},
		}, "0.1:4, 1.1:2, 2.1:3", "2.1:3, 1.1:2, 0.1:4", 0},
	} {
		x, tasks := small(3, 2), make([]Chain, 6)
		for _, e := range c.ends {
			x.Add(&tasks[e.attempt.Task], e.attempt, e.cause)
		}
		if kept, latest := x.show(); kept != c.kept || latest != c.latest || x.Omitted() != c.unkept {
			t.Errorf("%s: kept %q, latest %q, %d unkept; want %q, %q, %d", c.name, kept, latest, x.Omitted(), c.kept, c.latest, c.unkept)
		}
	}
}

// plain does what Attempts does, by maps and lists.
type plain struct {
	maxStored, maxOverflow int
	stored                 []string // task.number of those that are kept
	shown                  map[string]string
	lost                   map[string]bool
	overflow               []string
	omitted                int
}

func (p *plain) add(a Attempt, cause string) {
	key := fmt.Sprint(a.Task, ".", a.Number)
	switch known := slices.Contains(p.stored, key); {
	case known && !p.lost[key]:
		return
	case !known && len(p.stored) == p.maxStored:
		p.omitted++
		p.overflow = append(p.overflow, show(&a))
		p.overflow = p.overflow[max(0, len(p.overflow)-p.maxOverflow):]
		return
	case !known:
		p.stored = append(p.stored, key)
	}
	p.lost[key] = a.Lost
	p.shown[key] = strings.TrimRight(show(&a)+" "+cause, " ")
}

func (p *plain) show() (kept, latest string) {
	var list, last []string
	for _, key := range p.stored {
		list = append(list, p.shown[key])
		text, _, _ := strings.Cut(p.shown[key], " ")
		last = append(last, text)
	}
	last = append(last, p.overflow...)
	slices.Reverse(last)
	return strings.Join(list, ", "), strings.Join(last, ", ")
}

// TestPlain checks Attempts against plain.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most, ring := rapid.IntRange(1, 12).Draw(t, "most"), rapid.IntRange(1, 4).Draw(t, "ring")
		x := small(most, ring)
		x.Expect(rapid.IntRange(0, 20).Draw(t, "expected"))
		p := &plain{maxStored: most, maxOverflow: ring, shown: make(map[string]string), lost: make(map[string]bool)}
		tasks := make([]Chain, 4)
		for i := range rapid.IntRange(0, 40).Draw(t, "ends") {
			task, number := rapid.Int32Range(0, 3).Draw(t, "task"), rapid.Int32Range(1, 5).Draw(t, "number")
			a := ended(task, number, int64(i))
			if a.Lost = rapid.Bool().Draw(t, "lost"); a.Lost {
				a.State = wire.AttemptKilled
			}
			cause := rapid.SampledFrom([]string{"", "no space", "killed"}).Draw(t, "cause")
			x.Add(&tasks[task], a, cause)
			p.add(a, cause)
			kept, latest := x.show()
			if wantKept, wantLatest := p.show(); kept != wantKept || latest != wantLatest || x.Omitted() != p.omitted {
				t.Fatalf("kept %q, latest %q, %d unkept; want %q, %q, %d", kept, latest, x.Omitted(), wantKept, wantLatest, p.omitted)
			}
		}
	})
}

// TestStatus: an attempt is told as it was kept, with times by what is known of them.
func TestStatus(t *testing.T) {
	const since, now = 1_000, 9_000
	for _, c := range []struct {
		name                  string
		took                  time.Duration
		launched              bool
		launchedAt, began, so int64
	}{
		{"its tracker says how long it took", 5 * time.Second, true, since, 4_000, 5_000},
		{"its tracker says nothing", 0, true, since, since, 8_000},
		{"it took less than a millisecond", time.Microsecond, true, since, since, 8_000},
		{"it took longer than it was known", 10 * time.Second, true, -1_000, -1_000, 10_000},
		{"an earlier leader has launched it", 5 * time.Second, false, 0, 4_000, 5_000},
		{"an earlier leader has launched it, and its tracker says nothing", 0, false, 0, since, 8_000},
	} {
		a := Attempt{Number: 1002, Task: 7, Kind: wire.Reduce, State: wire.AttemptFailed, Bytes: 11, Level: wire.RackLocal, Tracker: 3}
		a.Reads.Node.Bytes = 12
		a.SetTimes(since, now, c.took, c.launched)
		x, task := New(), Chain(0)
		x.Add(&task, a, strings.Repeat("x", wire.MaxTrouble+1))
		want := wire.AttemptStatus{
			Attempt: wire.AttemptID{Task: wire.TaskID{Kind: wire.Reduce, N: 7}, N: 1002}, State: wire.AttemptFailed,
			Bytes: wire.Progress{Done: 11, Total: 11}, Began: c.began, Took: c.so, Launched: c.launchedAt,
			Level: wire.RackLocal, Reads: a.Reads, Error: strings.Repeat("x", wire.MaxTrouble) + "…",
		}
		if got := x.Status(&x.Stored()[0]); got != want {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, want)
		}
	}
}
