package pages

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
)

// comparePage shows two ended jobs side by side.
type comparePage struct {
	A, B      web.History
	Timelines []*stack // of both, on axes of the same length
	Marks     []mark   // of the axes: time since the submission
	Sections  []section
}

// section is a part of the comparison.
type section struct {
	Name string
	Rows []pair
}

// pair is a value of two jobs. Ratio is the second by the first; empty: it says nothing.
type pair struct {
	Name, A, B, Ratio string
	Worse             bool // the second is much larger
}

func (h *handler) compare(r *http.Request) (any, error) {
	page := new(comparePage)
	var a, b web.Breakdown
	for _, of := range []struct {
		name  string
		past  *web.History
		times *web.Breakdown
	}{{"a", &page.A, &a}, {"b", &page.B, &b}} {
		id := r.URL.Query().Get(of.name)
		if id == "" {
			return nil, badRequest("choose two jobs in the history: the address needs ?a=JOB&b=JOB")
		}
		job := "/v1/jobs/" + url.PathEscape(id)
		err := h.get(r, job+"/history", nil, of.past)
		if err == nil {
			err = h.get(r, job+"/breakdown", nil, of.times)
		}
		if err != nil {
			return nil, err
		}
	}
	length, marks := elapsedAxis(max(page.A.ElapsedMillis, page.B.ElapsedMillis))
	page.Marks = marks
	for _, past := range []*web.History{&page.A, &page.B} {
		axis := axis{Begin: past.Submitted, End: past.Submitted.Add(millis(length)), Marks: marks}
		s := attemptsOverTime(past.Attempts, &axis)
		if s == nil {
			s = &stack{Axis: axis, Now: 1}
			s.draw()
		}
		s.Title = past.ID
		page.Timelines = append(page.Timelines, s)
	}
	page.Sections = compared(&page.A, &page.B, &a, &b)
	return page, nil
}

// much is the ratio from which a larger value is marked.
const much = 1.25

func compared(a, b *web.History, timesA, timesB *web.Breakdown) []section {
	var job, slots, counters section
	text := func(name, a, b string) { job.Rows = append(job.Rows, pair{Name: name, A: a, B: b}) }
	number := func(to *section, name string, a, b int64, show func(int64) string) {
		p := pair{Name: name, A: show(a), B: show(b)}
		if a > 0 && a != b {
			p.Ratio, p.Worse = fmt.Sprintf("%.2f", float64(b)/float64(a)), float64(b) >= much*float64(a)
		}
		to.Rows = append(to.Rows, p)
	}
	job.Name, slots.Name, counters.Name = "Job", "Time in slots", "Counters"
	text("Name", a.Name, b.Name)
	text("State", a.State, b.State)
	text("Submitted (UTC)", wallTime(a.Submitted), wallTime(b.Submitted))
	text("Pool", a.Settings.Pool, b.Settings.Pool)
	number(&job, "Time", a.ElapsedMillis, b.ElapsedMillis, span)
	number(&job, "Maps", int64(a.Maps.Total), int64(b.Maps.Total), grouped)
	number(&job, "Reduces", int64(a.Reduces.Total), int64(b.Reduces.Total), grouped)
	number(&job, "Failed attempts", int64(a.Maps.FailedAttempts+a.Reduces.FailedAttempts), int64(b.Maps.FailedAttempts+b.Reduces.FailedAttempts), grouped)
	for _, phase := range []string{"map", "reduce"} {
		number(&job, "Median time of a "+phase, medianOf(timesA, phase), medianOf(timesB, phase), span)
	}
	if a.Partitions != nil && b.Partitions != nil && len(a.Partitions.Largest) > 0 && len(b.Partitions.Largest) > 0 {
		number(&job, "Largest partition", a.Partitions.Largest[0].Bytes, b.Partitions.Largest[0].Bytes, client.Size)
	}
	ofA, ofB := useOf(a.SlotTime), useOf(b.SlotTime)
	for _, use := range useOrder(a.SlotTime, b.SlotTime) {
		name := use
		if known, ok := uses[use]; ok {
			name = known[0]
		}
		number(&slots, name, ofA[use], ofB[use], span)
	}
	names := make(map[string]bool)
	for _, of := range []map[string]map[string]int64{a.Counters, b.Counters} {
		for group, values := range of {
			for name := range values {
				names[group+"\x00"+name] = true
			}
		}
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	slices.SortFunc(sorted, cmp.Compare)
	for _, both := range sorted {
		group, name, _ := strings.Cut(both, "\x00")
		number(&counters, name, a.Counters[group][name], b.Counters[group][name], grouped)
	}
	return slices.DeleteFunc([]section{job, slots, counters}, func(s section) bool { return len(s.Rows) == 0 })
}

func medianOf(b *web.Breakdown, phase string) int64 {
	for _, x := range b.Phases {
		if x.Phase == phase {
			return x.MedianMillis
		}
	}
	return 0
}

func useOf(t *web.SlotTime) map[string]int64 {
	of := make(map[string]int64)
	if t != nil {
		for _, u := range t.Uses {
			of[u.Use] = u.Millis
		}
	}
	return of
}

// useOrder has the uses of one job, then those that only the other one has.
func useOrder(all ...*web.SlotTime) (order []string) {
	for _, t := range all {
		if t == nil {
			continue
		}
		for _, u := range t.Uses {
			if !slices.Contains(order, u.Use) {
				order = append(order, u.Use)
			}
		}
	}
	return order
}
