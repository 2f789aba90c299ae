package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// TestLive: an open page shows a new job, its end and a new leader, without being loaded again. The page of the
// log of an attempt shows what the attempt writes.
func TestLive(t *testing.T) {
	if testing.Short() {
		t.Skip("make compat runs it")
	}
	w := start(t, 3, 2)
	p := w.tab(t)
	p.load("/jobs")
	p.mark()
	p.awaitText("main", "No job")
	run := w.submit(t, "first", w.input(t, "in", 4), "--", "-shape", "first", "-gate", w.gate, "-say", hostile)
	p.awaitText("main tbody", "first")
	p.awaitText("main tbody", "running")
	p.checkMarked()

	job := w.awaitJob(t, run, "first", "running")
	log := w.tab(t)
	log.load("/jobs/" + job)
	log.await("a link to the log", `document.querySelector('main a[href$="/stderr"]') !== null`)
	log.click(`main a[href$="/stderr"]`)
	log.awaitText("#log", "record 1 of map 0 "+hostile)
	log.mark()
	log.checkInert()

	leader := w.leader(t)
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	second := w.submit(t, "second", w.input(t, "in", 4), "--", "-shape", "second")
	p.awaitText("main tbody", "second")
	p.checkMarked()
	w.open()
	run.Succeed()
	second.Succeed()
	p.await("the end of both jobs", `Array.from(document.querySelectorAll("main tbody tr"), (r) => r.innerText).filter((r) => r.includes("succeeded")).length === 2`)
	p.checkMarked()
	log.awaitText("#log", "record 4 of map 0 "+hostile)
	log.awaitText("#logstatus", "The attempt has ended")
	log.checkMarked()
	log.checkInert()
	log.checkQuiet()
	p.checkQuiet()
}

// mark marks the document, so that checkMarked sees whether it was loaded again.
func (p *tab) mark() { eval[bool](p, "window.marked = true") }

func (p *tab) checkMarked() {
	p.t.Helper()
	if !eval[bool](p, "window.marked === true") {
		p.t.Error("the browser has loaded the page again")
	}
}

// leader returns the job tracker that leads.
func (w *world) leader(t *testing.T) *processes.Daemon {
	t.Helper()
	var leads *processes.Daemon
	trial.Await(t, "a leader", func() bool {
		out, err := w.Command(t.Context(), "mrsubmit", "cluster", "-json").Output()
		for _, d := range w.JobTrackers {
			if err == nil && strings.Contains(string(out), fmt.Sprintf(`"leader": %q`, d.ID)) {
				leads = d
			}
		}
		return leads != nil
	})
	return leads
}

// TestSortAndFilter: titles of columns sort, also without JavaScript, and forms filter.
func TestSortAndFilter(t *testing.T) {
	if testing.Short() {
		t.Skip("make compat runs it")
	}
	w, _ := theShared(t)
	names := func(p *tab) []string { return p.texts("main tbody tr th.name a.main") }
	p := w.tab(t)
	p.load("/jobs")
	p.click("main thead th.name a")
	p.await("rows in order", `document.querySelector("main thead th.name").getAttribute("aria-sort") === "ascending"`)
	if got := names(p); !slices.IsSorted(got) || len(got) < 9 {
		t.Errorf("sorted by name: %q", got)
	}
	p.must(p.within(setValue(`main form [name="name"]`, "night")))
	p.click("main form button")
	p.await("three rows", `document.querySelectorAll("main tbody tr").length === 3`)
	if got := names(p); len(got) != 3 || got[0] != "nightly" {
		t.Errorf("filtered by name: %q", got)
	}
	p.checkQuiet()

	plain := w.tab(t)
	plain.withoutScripts()
	plain.load("/jobs")
	plain.click("main thead th.name a")
	plain.awaitText("main thead th.name", "↑")
	if got := names(plain); !slices.IsSorted(got) || len(got) < 9 {
		t.Errorf("sorted by name without JavaScript: %q", got)
	}
}

// TestKeyboard: the first key leads past the navigation, and keys lead to the values of charts.
func TestKeyboard(t *testing.T) {
	if testing.Short() {
		t.Skip("make compat runs it")
	}
	w, j := theShared(t)
	p := w.tab(t)
	p.load("/jobs/" + j.done)
	p.press(kb.Tab)
	if got := eval[string](p, "document.activeElement.className"); got != "skip" {
		t.Errorf("the first Tab leads to %q", got)
	}
	p.press(kb.Enter)
	p.await("the content has the focus", `document.activeElement.id === "content"`)
	for range 200 {
		p.press(kb.Tab)
		if eval[bool](p, `document.activeElement.matches("main .chart summary")`) {
			p.press(kb.Enter)
			p.await("the values of the chart", `document.querySelector("main .chart details[open] td") !== null`)
			return
		}
	}
	t.Error("no key leads to the values of a chart")
}
