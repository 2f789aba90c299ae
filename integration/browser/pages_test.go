package browser

import (
	"testing"
)

// page is a page of the shared world.
type page struct {
	name, path string
	shows      []string // texts in its content
}

func mainPages(j *jobs) []page {
	return []page{
		{"cluster", "/", []string{"Task trackers", "tt1", "tt2"}},
		{"jobs", "/jobs", []string{"nightly", "clicks"}},
		{"job", "/jobs/" + j.running, []string{"clicks", "Progress"}},
	}
}

func otherPages(j *jobs) []page {
	return []page{
		{"trackers", "/trackers", []string{"tt1", "tt2"}},
		{"ended", "/jobs/" + j.done, []string{"nightly", "succeeded", "Bytes over time", "Times of maps", "What its time in slots went to"}},
		{"failed", "/jobs/" + j.failed, []string{"First failure", "has no price " + hostile}},
		{"hostile", "/jobs/" + j.hostile, []string{attack, "Running attempts"}},
		{"attempts", "/jobs/" + j.running + "/attempts?state=running", []string{"m_000000"}},
		{"counters", "/jobs/" + j.failed + "/counters", []string{"records " + attack}},
		{"settings", "/jobs/" + j.hostile + "/settings", []string{"-say", hostile, "mapreduce.job.reduces"}},
		{"flow", "/flows/" + j.flow, []string{"Jobs in order", "orders", "totals"}},
		{"scheduler", "/scheduler", []string{"clicks", "Change"}},
		{"whatif", "/scheduler/whatif", []string{"srpt", "All metrics"}},
		{"history", "/history", []string{"nightly"}},
		{"trend", "/history?name=nightly&exact=", []string{"3 runs that succeeded"}},
		{"compare", "/history/compare?a=" + j.done + "&b=" + j.other, []string{j.done, j.other}},
		{"problem", "/jobs/job_1_0001", []string{"cannot be shown"}},
	}
}

// TestMainPages opens the three main pages: the gate runs it.
func TestMainPages(t *testing.T) {
	w, j := theShared(t)
	w.check(t, mainPages(j))
}

// TestOtherPages opens all others.
func TestOtherPages(t *testing.T) {
	if testing.Short() {
		t.Skip("make compat opens all pages")
	}
	w, j := theShared(t)
	w.check(t, otherPages(j))
}

// TestFirstFailure: the page of a failed job has the end of the standard error of the attempt that failed first.
func TestFirstFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("make compat runs it")
	}
	w, j := theShared(t)
	p := w.tab(t)
	p.load("/jobs/" + j.failed)
	p.awaitText("pre.log", "of reduce 0 "+hostile)
	p.checkInert()
	p.checkQuiet()
}

// check opens pages as a user sees them, and checks what all of them promise.
func (w *world) check(t *testing.T, pages []page) {
	p := w.tab(t)
	for _, page := range pages {
		t.Run(page.name, func(t *testing.T) {
			p := p.in(t)
			cost := p.cost(page.path)
			t.Logf("first paint after %.0f ms, %.0f KiB in all", cost.Paint, cost.Bytes/1024)
			if cost.Bytes > maxBytes {
				t.Errorf("the page loads %.0f KiB", cost.Bytes/1024)
			}
			for _, text := range page.shows {
				p.awaitText("main", text)
			}
			p.checkInert()
			for _, l := range []look{wide, dark, narrow} {
				p.as(l)
				p.shoot(page.name + "-" + l.name)
				p.checkFits()
			}
			p.checkQuiet()
			for _, l := range []look{wide, dark, narrow} {
				t.Run("accessible "+l.name, func(t *testing.T) {
					axe := axeSource(t)
					p := p.in(t)
					p.as(l)
					p.checkAccessible(axe)
				})
			}
			p.as(wide)
		})
	}
}

// maxBytes is the promise for a page with everything that it loads.
const maxBytes = 300 << 10

// checkInert fails if a text of a job became an element or a running script.
func (p *tab) checkInert() {
	p.t.Helper()
	if n := eval[int](p, `document.querySelectorAll("main script, main img, main [onerror], main [style]").length`); n > 0 {
		p.t.Errorf("the content has %d scripts, images or styles", n)
	}
	if title := eval[string](p, "document.title"); title == "attacked" {
		p.t.Error("a text of a job has run as a script")
	}
}
