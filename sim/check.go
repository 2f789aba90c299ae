package sim

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

func (w *world) allEnded() bool {
	for _, c := range w.clients {
		if c.ids == nil {
			return false
		}
		for _, id := range c.ids {
			if s, ok := w.status(id); !ok || !s.State.Ended() {
				return false
			}
		}
	}
	return true
}

func (w *world) unfinished() string {
	text := ""
	for _, c := range w.clients {
		if c.ids == nil {
			text += "\nsubmission " + c.sub.Key + " is not answered"
		}
		for _, id := range c.ids {
			for _, n := range w.jts {
				if s, ok := n.core.Status(id); n.core.Leads() && !(ok && s.State.Ended()) {
					text += fmt.Sprintf("\n%v is %v on %s: maps %+v reduces %+v waits %q troubles %q",
						id, s.State, n.name, s.Maps, s.Reduces, s.Waits, s.Troubles)
				}
			}
		}
	}
	return text
}

// tidy says whether nothing is left that is to go.
func (w *world) tidy() bool { return w.leavings() == "" }

func (w *world) leavings() string {
	text := ""
	for _, t := range w.tts {
		text += t.left()
	}
	known := map[string]bool{
		clusterStaging + "/" + wire.StagingClusters: true,
		clusterStaging + "/" + wire.StagingHistory:  true,
	}
	for _, n := range w.jts {
		if s := n.core.Cluster(n.clock()); s.Cluster != "" {
			known[nonceFile(s.Cluster)] = true
			break
		}
	}
	for _, c := range w.clients {
		for i, id := range c.ids {
			if s, _ := w.status(id); s.State == wire.Succeeded || w.finished(c, i, s) || uncleaned(s) {
				known[outputOf(c.sub, i)] = true
			}
		}
	}
	for name, failures := range w.book.unswept {
		known[name] = failures >= 4 // the job tracker gives up
	}
	for _, dir := range []string{"mem://c/out", clusterStaging, clusterStaging + "/" + wire.StagingClusters} {
		infos, err := w.fs.List(dir)
		w.must(err)
		for _, info := range infos {
			if !known[info.Name] && !w.madeTooLate(info.Name) {
				text += "\nleft: " + info.Name
			}
		}
	}
	return text
}

// madeTooLate says whether something is an empty directory that a call of a dead setup
// attempt has made beside an output, after all of the job was removed. Nobody can know of
// that: the parent of an output is not the job's.
func (w *world) madeTooLate(name string) bool {
	inside, err := w.fs.List(name)
	return err == nil && len(inside) == 0 && w.book.lateDirs[name]
}

// finished says whether a job has failed with its output complete: what was
// temporary could not be removed, as often as that was tried.
func (w *world) finished(c *client, i int, s wire.JobStatus) bool {
	_, err := w.fs.Stat(outputOf(c.sub, i) + "/_SUCCESS")
	return s.State == wire.Failed && err == nil
}

// uncleaned says whether a job's cleanup has failed as often as it was tried, as on a sick
// tracker while no other was there; its error tells of that.
func uncleaned(s wire.JobStatus) bool { return strings.Contains(s.Error, "\ncleaning up: ") }

func outputOf(sub *wire.Submission, index int) string { return mrruntime.OutputOf(sub, index) }

// checkEnd checks what a finished run must look like.
func (w *world) checkEnd() {
	if left := w.leavings(); left != "" {
		w.fail("V11: %v after the last job has ended:%s", quiet, left)
	}
	var past histories
	for _, c := range w.clients {
		for i, id := range c.ids {
			s, _ := w.status(id)
			w.book.outlived(w, s)
			past.checkHistory(w, s)
			switch {
			case s.State == wire.Succeeded || w.finished(c, i, s):
				if c.sub.Plan.Jobs[i].Output != "" { // else it is gone by now
					w.checkOutput(c, i, s)
				}
			case s.State == wire.Killed && !c.killed:
				w.fail("V9: %v was killed by nobody: %s", id, s.Error)
			case s.State == wire.Failed && w.harmless && !c.mayFail():
				w.fail("V9: %v failed though nothing happened that can fail an attempt: %s", id, s.Error)
			}
			if w.book.stopped[id] && s.State == wire.Succeeded {
				w.fail("V7: the kill of %v was answered, and it has succeeded", id)
			}
		}
	}
	past.checkSlots(w)
	for _, n := range w.jts {
		if n.applied == len(w.raft.log) {
			w.book.applied(w, n)
		}
	}
}

// mayFail says whether a job of the client may fail by its own doing.
func (c *client) mayFail() bool { return c.killed || slices.Contains(c.erratic, true) }

// checkOutput compares the files of a job with what its maps have given.
func (w *world) checkOutput(c *client, i int, s wire.JobStatus) {
	out := outputOf(c.sub, i)
	infos, err := w.fs.List(out)
	w.must(err)
	var names []string
	for _, info := range infos {
		names = append(names, strings.TrimPrefix(info.Name, out+"/"))
	}
	want := []string{"_SUCCESS"}
	plan := &c.sub.Plan.Jobs[i]
	for p := range plan.Reduces {
		want = append(want, fmt.Sprintf("part-r-%05d", p))
	}
	for m := 0; m < s.Maps.Total && plan.Reduces == 0; m++ {
		want = append(want, fmt.Sprintf("part-m-%05d", m))
	}
	if !slices.Equal(names, want) {
		w.fail("V10: the output of %v has %v, want %v", s.ID, names, want)
	}
	chosen := make(map[int]uint64) // of each map
	for n, name := range want[1:] {
		data := w.read(out + "/" + name)
		if plan.Reduces == 0 {
			if data != string(mapLine(n)) {
				w.fail("V10: %s of %v says %q", name, s.ID, data)
			}
			continue
		}
		w.checkPartition(c, i, s, n, data, chosen)
	}
}

// checkPartition checks that a reduce has written what it was to read, and of
// maps that differ each time what the other reduces have read.
func (w *world) checkPartition(c *client, i int, s wire.JobStatus, partition int, data string, chosen map[int]uint64) {
	lines := strings.Split(strings.TrimSuffix(data, "\n"), "\n")
	if data == "" {
		lines = nil
	}
	for m := range s.Maps.Total {
		if !records(s.ID, m, partition) {
			continue
		}
		var got int
		var d uint64
		if len(lines) == 0 {
			w.fail("V10: partition %d of %v has not the records of map %d", partition, s.ID, m)
		}
		if _, err := fmt.Sscanf(lines[0], "%d %x", &got, &d); err != nil || got != m {
			w.fail("V10: partition %d of %v has %q where map %d is due (%v)", partition, s.ID, lines[0], m, err)
		}
		lines = lines[1:]
		if before, known := chosen[m]; known && before != d {
			w.fail("V10: the reduces of %v have read two outputs of map %d: %x and %x", s.ID, m, before, d)
		}
		chosen[m] = d
		if !c.erratic[i] && d != digest(s.ID, m) {
			w.fail("V10: partition %d of %v has %x of map %d, want %x", partition, s.ID, d, m, digest(s.ID, m))
		}
	}
	if len(lines) > 0 {
		w.fail("V10: partition %d of %v has %q twice, or of nobody", partition, s.ID, lines)
	}
}

func (w *world) read(name string) string {
	f, err := w.fs.Open(name)
	w.must(err)
	data, err := io.ReadAll(f)
	w.must(err)
	return string(data)
}

func sortedPieces(pieces []piece) []piece {
	pieces = slices.Clone(pieces)
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.m, b.m) })
	return pieces
}
