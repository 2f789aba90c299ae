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

// small returns an empty Attempts with low limits.
func small(maxStored, maxOverflow int) *Attempts {
	return &Attempts{stored: chunks{size: 2}, maxStored: maxStored, maxOverflow: maxOverflow}
}

// ended makes an attempt at a map; tests identify it by its bytes.
func ended(task, number int32, bytes int64) Attempt {
	return Attempt{Kind: wire.Map, Task: task, Number: int(number), Bytes: bytes, State: wire.AttemptSucceeded}
}

func lost(task, number int32) Attempt {
	return Attempt{Kind: wire.Map, Task: task, Number: int(number), State: wire.AttemptKilled, Lost: true}
}

// show renders an attempt as task.number:bytes, with an L if it counts as lost.
func show(a *Attempt) string {
	text := fmt.Sprintf("%d.%d:%d", a.Task, a.Number, a.Bytes)
	if a.Lost {
		text += "L"
	}
	return text
}

func (x *Attempts) show() (stored, latest string) {
	var lists [2][]string
	for i := range x.Stored() {
		a := x.At(i)
		lists[0] = append(lists[0], strings.TrimRight(show(a)+" "+x.Status(a).Error, " "))
	}
	for a := range x.Latest() {
		lists[1] = append(lists[1], show(a))
	}
	return strings.Join(lists[0], ", "), strings.Join(lists[1], ", ")
}

// show renders the attempts, and the level of those that have one.
func (v *View) show() string {
	var list []string
	for a := range v.All() {
		if a.Level != 0 {
			list = append(list, "changed")
		}
		list = append(list, strings.TrimRight(show(a)+" "+v.Status(a).Error, " "))
	}
	return strings.Join(list, ", ") + "; " + v.showLatest()
}

func (v *View) showLatest() string {
	var list []string
	for a := range v.Latest() {
		list = append(list, show(a))
	}
	return strings.Join(list, ", ")
}

// TestAdd stores three attempts, and the last two of later ones.
func TestAdd(t *testing.T) {
	type end struct {
		attempt Attempt
		cause   string
	}
	for _, c := range []struct {
		name           string
		ends           []end
		stored, latest string
		omitted        int
	}{
		{"none", nil, "", "", 0},
		{"two tasks", []end{{ended(0, 1, 5), ""}, {ended(1, 1, 6), "no space"}}, "0.1:5, 1.1:6 no space", "1.1:6, 0.1:5", 0},
		{"reported twice", []end{{ended(0, 1, 5), ""}, {ended(0, 1, 6), "no space"}}, "0.1:5", "0.1:5", 0},
		{"reported twice, another between", []end{{ended(0, 1, 5), ""}, {ended(0, 2, 6), ""}, {ended(0, 1, 7), ""}}, "0.1:5, 0.2:6", "0.2:6, 0.1:5", 0},
		{"lost, then reported", []end{{lost(0, 1), "lost"}, {ended(1, 1, 6), ""}, {ended(0, 1, 7), ""}}, "0.1:7, 1.1:6", "1.1:6, 0.1:7", 0},
		{"lost twice", []end{{lost(0, 1), "lost"}, {lost(0, 1), "lost again"}}, "0.1:0L lost again", "0.1:0L", 0},
		{"lost, another before and after", []end{
			{ended(0, 1, 5), ""}, {lost(0, 2), "lost"}, {ended(0, 3, 6), ""}, {ended(0, 2, 7), "killed"}, {ended(0, 1, 8), ""},
		}, "0.1:5, 0.2:7 killed, 0.3:6", "0.3:6, 0.2:7, 0.1:5", 0},
		{"reported, then lost", []end{{ended(0, 1, 5), ""}, {lost(0, 1), "lost"}}, "0.1:5", "0.1:5", 0},
		{"one too many", []end{
			{ended(0, 1, 1), ""}, {ended(1, 1, 2), ""}, {ended(2, 1, 3), ""}, {ended(3, 1, 4), "no space"},
		}, "0.1:1, 1.1:2, 2.1:3", "3.1:4, 2.1:3, 1.1:2, 0.1:1", 1},
		{"three too many", []end{
			{ended(0, 1, 1), ""}, {ended(1, 1, 2), ""}, {ended(2, 1, 3), ""}, {ended(3, 1, 4), ""}, {ended(4, 1, 5), ""}, {ended(5, 1, 6), ""},
		}, "0.1:1, 1.1:2, 2.1:3", "5.1:6, 4.1:5, 2.1:3, 1.1:2, 0.1:1", 3},
		{"lost, then reported when there is no more room", []end{
			{lost(0, 1), "lost"}, {ended(1, 1, 2), ""}, {ended(2, 1, 3), ""}, {ended(0, 1, 4), ""}, {ended(1, 1, 5), ""},
		}, "0.1:4, 1.1:2, 2.1:3", "2.1:3, 1.1:2, 0.1:4", 0},
	} {
		x, tasks := small(3, 2), make([]Chain, 6)
		for _, e := range c.ends {
			x.Add(&tasks[e.attempt.Task], e.attempt, e.cause)
		}
		if stored, latest := x.show(); stored != c.stored || latest != c.latest || x.Omitted() != c.omitted {
			t.Errorf("%s: stored %q, latest %q, %d omitted; want %q, %q, %d", c.name, stored, latest, x.Omitted(), c.stored, c.latest, c.omitted)
		}
	}
}

// plain is a simple model of Attempts, with maps and lists.
type plain struct {
	maxStored, maxOverflow int
	stored                 []string // task.number of the stored attempts
	texts                  map[string]string
	lost                   map[string]bool
	overflow               []string
	omitted                int
}

func (p *plain) add(a Attempt, cause string) {
	key := fmt.Sprint(a.Task, ".", a.Number)
	switch found := slices.Contains(p.stored, key); {
	case found && !p.lost[key]:
		return
	case !found && len(p.stored) == p.maxStored:
		p.omitted++
		p.overflow = append(p.overflow, show(&a))
		p.overflow = p.overflow[max(0, len(p.overflow)-p.maxOverflow):]
		return
	case !found:
		p.stored = append(p.stored, key)
	}
	p.lost[key] = a.Lost
	p.texts[key] = strings.TrimRight(show(&a)+" "+cause, " ")
}

func (p *plain) show() (stored, latest string) {
	var list, last []string
	for _, key := range p.stored {
		list = append(list, p.texts[key])
		text, _, _ := strings.Cut(p.texts[key], " ")
		last = append(last, text)
	}
	last = append(last, p.overflow...)
	slices.Reverse(last)
	return strings.Join(list, ", "), strings.Join(last, ", ")
}

// TestPlain compares Attempts with the model.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxStored, maxOverflow := rapid.IntRange(1, 12).Draw(t, "maxStored"), rapid.IntRange(1, 4).Draw(t, "maxOverflow")
		x := small(maxStored, maxOverflow)
		p := &plain{maxStored: maxStored, maxOverflow: maxOverflow, texts: make(map[string]string), lost: make(map[string]bool)}
		tasks := make([]Chain, 4)
		var views []View
		var wantViews []string
		for i := range rapid.IntRange(0, 40).Draw(t, "ends") {
			task, number := rapid.Int32Range(0, 3).Draw(t, "task"), rapid.Int32Range(1, 5).Draw(t, "number")
			a := ended(task, number, int64(i))
			if a.Lost = rapid.Bool().Draw(t, "lost"); a.Lost {
				a.State = wire.AttemptKilled
			}
			cause := rapid.SampledFrom([]string{"", "no space", "killed"}).Draw(t, "cause")
			x.Add(&tasks[task], a, cause)
			p.add(a, cause)
			stored, latest := x.show()
			if wantStored, wantLatest := p.show(); stored != wantStored || latest != wantLatest || x.Omitted() != p.omitted {
				t.Fatalf("stored %q, latest %q, %d omitted; want %q, %q, %d", stored, latest, x.Omitted(), wantStored, wantLatest, p.omitted)
			}
			if rapid.Bool().Draw(t, "freeze") {
				v := x.Freeze()
				if last := show(x.Last()); v.showLatest() != latest || v.Omitted() != p.omitted || !strings.HasPrefix(latest, last) {
					t.Fatalf("a view has the last ones %q and omits %d, want %q and %d; the last one is %s", v.showLatest(), v.Omitted(), latest, p.omitted, last)
				}
				views, wantViews = append(views, v), append(wantViews, v.show())
			}
			if x.Stored() > 0 && rapid.IntRange(0, 9).Draw(t, "level") == 0 {
				x.SetLevel(rapid.IntRange(0, x.Stored()-1).Draw(t, "at"), wire.NodeLocal)
			}
		}
		for i := range views {
			if got := views[i].show(); got != wantViews[i] {
				t.Fatalf("a view has %q, want %q", got, wantViews[i])
			}
		}
	})
}

// TestStatus checks the status of a stored attempt, and its times with and without a report.
func TestStatus(t *testing.T) {
	const since, now = 1_000, 9_000
	for _, c := range []struct {
		name                              string
		took                              time.Duration
		launched                          bool
		wantLaunched, wantBegan, wantTook int64
	}{
		{"its tracker reports how long it took", 5 * time.Second, true, since, 4_000, 5_000},
		{"its tracker reports no time", 0, true, since, since, 8_000},
		{"it took less than a millisecond", time.Microsecond, true, since, since, 8_000},
		{"it took longer than since its launch", 10 * time.Second, true, -1_000, -1_000, 10_000},
		{"an earlier leader launched it", 5 * time.Second, false, 0, 4_000, 5_000},
		{"an earlier leader launched it, and its tracker reports no time", 0, false, 0, since, 8_000},
	} {
		a := Attempt{Number: 1002, Task: 7, Kind: wire.Reduce, State: wire.AttemptFailed, Bytes: 11, Level: wire.RackLocal, Tracker: 3}
		a.Reads.Node.Bytes = 12
		a.SetTimes(since, now, c.took, c.launched)
		x, task := New(), Chain(0)
		x.Add(&task, a, strings.Repeat("x", wire.MaxTrouble+1))
		want := wire.AttemptStatus{
			Attempt: wire.AttemptID{Task: wire.TaskID{Kind: wire.Reduce, N: 7}, N: 1002}, State: wire.AttemptFailed,
			Bytes: wire.Progress{Done: 11, Total: 11}, Began: c.wantBegan, Took: c.wantTook, Launched: c.wantLaunched,
			Level: wire.RackLocal, Reads: a.Reads, Error: strings.Repeat("x", wire.MaxTrouble) + "…",
		}
		if got := x.Status(x.At(0)); got != want {
			t.Errorf("%s:\n%+v, want\n%+v", c.name, got, want)
		}
	}
}
