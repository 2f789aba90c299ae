package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// outputDrop is the work of dropping the workers and the chosen map outputs of a lost, drained or restarted
// tracker, which may be very many. Its maps rerun; those of a restarted tracker wait for its inventory
// first.
type outputDrop struct {
	l       *leader
	tracker string
	number  int32 // 1 + the tracker's number
	event   string
	workers jobRound    // the jobs have none there any more
	refs    []outputRef // that are left
	awaited bool        // the tracker has restarted, and may report the outputs
	dropped int
	reruns  map[int]*reruns // by job
	told    []int           // numbers of the jobs in reruns that are left to be told, after the last output; nil: not yet
	end     func(dropped int)
}

// reruns counts what runs again in a job since a tracker was lost or restarted.
type reruns struct{ maps, reduces, homes int }

// beginDrop begins to drop the outputs of a tracker that was detached. end is called after the last
// one.
func (l *leader) beginDrop(t *tracker, event string, reruns map[int]*reruns, end func(dropped int)) {
	w := &outputDrop{
		l: l, tracker: t.Name, number: t.number + 1, event: event, refs: t.outputs, reruns: reruns, end: end,
		awaited: event == trackerRestarted,
	}
	w.workers = jobRound{l: l, cost: oneEntry, visit: func(j *job) { j.measures.TrackerLost(t.number) }}
	w.workers.round.Request()
	t.outputs = nil
	l.works.drops[t.Name] = w
	l.works.Add(w)
}

// finishDrop drops the rest of the outputs of a tracker at once. Events of a tracker with the same name
// need that: it may report outputs, and have new workers.
func (l *leader) finishDrop(tracker string) {
	if w := l.works.drops[tracker]; w != nil {
		l.works.Finish(w)
	}
}

// Advance implements pieces.Work.
func (w *outputDrop) Advance(budget int) (spent int, done bool) {
	if spent, done = w.workers.Advance(budget); !done {
		return spent, false
	}
	for ; spent < budget && len(w.refs) > 0; spent++ {
		w.drop(w.refs[0])
		w.refs = w.refs[1:]
	}
	if len(w.refs) > 0 {
		return spent, false
	}
	if w.told == nil {
		w.told = slices.AppendSeq(make([]int, 0, len(w.reruns)), maps.Keys(w.reruns))
		slices.Sort(w.told)
		spent += len(w.told) / 8
	}
	for ; spent < budget && len(w.told) > 0; spent += 2 {
		w.reportReruns(w.told[0])
		w.told = w.told[1:]
	}
	if len(w.told) > 0 {
		return max(spent, 1), false
	}
	delete(w.l.works.drops, w.tracker)
	w.end(w.dropped)
	return spent, true
}

// drop drops an output, unless it is outdated.
func (w *outputDrop) drop(o outputRef) {
	l := w.l
	j := l.jobs[int(o.job)]
	if j == nil || j.maps[o.m].output.tracker != w.number || w.awaited && !j.facts.Running() {
		return
	}
	if j.facts.Running() {
		w.dropped++
	}
	if w.awaited {
		l.expectOutput(j, w.tracker, int(o.m))
		return
	}
	before := j.assign.Pending()
	l.dropOutput(j, int(o.m))
	l.updateMap(j, int(o.m))
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
func (w *outputDrop) reportReruns(job int) {
	j, r := w.l.jobs[job], w.reruns[job]
	if j == nil || !j.facts.Running() {
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
