package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// outputDrop is the work of dropping the chosen map outputs of a lost, drained or restarted tracker, which may be
// very many. Its maps rerun; those of a restarted tracker wait for its inventory first.
type outputDrop struct {
	outputVisits
	tracker string
	event   string
	awaited bool // the tracker has restarted, and may report the outputs
	dropped int
	reruns  map[int]*reruns // by job
}

// reruns counts what runs again in a job since a tracker was lost or restarted.
type reruns struct{ maps, reduces, homes int }

// beginDrop begins to drop the outputs of a tracker that was detached. end is called after the last
// one.
func (l *leader) beginDrop(t *tracker, event string, reruns map[int]*reruns, end func(dropped int)) {
	w := &outputDrop{tracker: t.Name, event: event, reruns: reruns, awaited: event == trackerRestarted}
	w.outputVisits = outputVisits{
		l: l, place: t.place, refs: t.outputs, visit: w.drop, tell: w.reportReruns,
		jobs: func() []int { return slices.Collect(maps.Keys(reruns)) },
		end: func() {
			delete(l.works.drops, t.place)
			l.fleet.places.free(t.place)
			end(w.dropped)
		},
	}
	t.outputs = nil
	l.fleet.places.all[t.place].gone = true
	l.works.drops[t.place] = w
	l.works.Add(w)
}

// drop drops an output.
func (w *outputDrop) drop(j *job, m int) {
	l, running := w.l, j.facts.Running()
	if running {
		w.dropped++
	}
	switch {
	case w.awaited && !running:
		j.maps[m].output.place = nowhere + 1
		return
	case w.awaited:
		l.expectOutput(j, w.tracker, m)
		return
	}
	before := j.assign.Pending()
	l.dropOutput(j, m)
	l.updateMap(j, m)
	if n := j.assign.Pending() - before; n > 0 {
		rerunsOf(w.reruns, j).maps += n
	}
	l.touch(j)
}

func rerunsOf(all map[int]*reruns, j *job) *reruns {
	r := all[j.facts.N()]
	if r == nil {
		r = new(reruns)
		all[j.facts.N()] = r
	}
	return r
}

// detachCounting detaches a tracker, and counts what runs again. The maps of its outputs come later.
func (l *leader) detachCounting(t *tracker) map[int]*reruns {
	all, pending := make(map[int]*reruns), make(map[*job]int)
	for j, homes := range t.hosting.homes {
		rerunsOf(all, j).homes = homes.Len()
		pending[j] = j.assign.Pending()
	}
	for _, a := range t.attempts {
		if r := rerunsOf(all, a.job); a.id.Task.Kind == wire.Reduce {
			r.reduces++
		}
		pending[a.job] = a.job.assign.Pending()
	}
	l.detach(t)
	for j, before := range pending {
		rerunsOf(all, j).maps += j.assign.Pending() - before
	}
	return all
}

// reportReruns adds what runs again in a job to its troubles.
func (w *outputDrop) reportReruns(j *job) {
	r := w.reruns[j.facts.N()]
	if !j.facts.Running() {
		return
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what [2]string
	}{
		{r.maps, [2]string{"map reruns", "maps rerun"}},
		{r.reduces, [2]string{"reduce reruns", "reduces rerun"}},
		{r.homes, [2]string{"partition is gathered again", "partitions are gathered again"}},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what[min(p.n-1, 1)]))
		}
	}
	if len(parts) > 0 {
		w.l.c.noteChange(j.id)
		j.faults.AddLossTrouble(fmt.Sprintf("tracker %s %s: %s", w.tracker, w.event, strings.Join(parts, ", ")))
	}
}
