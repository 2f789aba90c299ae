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
		if c.ids == nil && !c.told {
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
				if s, ok := n.core.Status(id); n.core.IsLeader() && !(ok && s.State.Ended()) {
					text += fmt.Sprintf("\n%v is %v on %s: maps %+v reduces %+v waits %q troubles %q",
						id, s.State, n.name, s.Maps, s.Reduces, s.WaitReason, s.Troubles)
				}
			}
		}
	}
	return text
}

// tidy reports whether all leftovers are gone.
func (w *world) tidy() bool { return w.leftovers() == "" }

func (w *world) leftovers() string {
	text := ""
	for _, t := range w.tts {
		text += t.leftovers()
	}
	expected := map[string]bool{
		clusterStaging + "/" + wire.StagingClusters: true,
		clusterStaging + "/" + wire.StagingHistory:  true,
	}
	for _, n := range w.jts {
		if s := n.core.Cluster(n.clock()); s.Cluster != "" {
			expected[nonceFile(s.Cluster)] = true
			break
		}
	}
	var uncleaned []wire.JobID
	for _, c := range w.clients {
		for i, id := range c.ids {
			s, _ := w.status(id)
			if s.State == wire.Succeeded || w.failedAfterCommit(c, i, s) || cleanupFailed(s) {
				expected[outputOf(c.sub, i)] = true
			}
			if cleanupFailed(s) {
				uncleaned = append(uncleaned, id)
			}
		}
	}
	ofUncleaned := func(name string) bool {
		return slices.ContainsFunc(uncleaned, func(id wire.JobID) bool { return strings.Contains(name, id.String()) })
	}
	for name, failures := range w.book.failedRemovals {
		expected[name] = failures >= 4 // the job tracker gives up
	}
	for _, dir := range []string{"mem://c/out", clusterStaging, clusterStaging + "/" + wire.StagingClusters} {
		infos, err := w.fs.List(dir)
		w.must(err)
		for _, info := range infos {
			if !expected[info.Name] && !w.madeTooLate(info.Name) && !ofUncleaned(info.Name) {
				text += "\nleft: " + info.Name
			}
		}
	}
	return text
}

// madeTooLate reports whether this is an empty directory beside an output that a dead setup
// attempt made after the cleanup of its job. No job removes it, because the parent of an output
// is not the job's.
func (w *world) madeTooLate(name string) bool {
	inside, err := w.fs.List(name)
	return err == nil && len(inside) == 0 && w.book.lateDirs[name]
}

// failedAfterCommit reports whether a job has failed with a complete output, because every
// attempt to remove its temporary files failed.
func (w *world) failedAfterCommit(c *client, i int, s wire.JobStatus) bool {
	_, err := w.fs.Stat(outputOf(c.sub, i) + "/_SUCCESS")
	return s.State == wire.Failed && err == nil
}

// cleanupFailed reports whether all cleanup attempts of a job failed, for example if the only
// tracker is sick. The error of the job says so.
func cleanupFailed(s wire.JobStatus) bool { return strings.Contains(s.Error, "\ncleaning up: ") }

func outputOf(sub *wire.Submission, index int) string { return mrruntime.OutputOf(sub, index) }

// checkEnd checks leftovers, outcomes, outputs and histories at the end of a run.
func (w *world) checkEnd() {
	if left := w.leftovers(); left != "" {
		w.fail("V11: %v after the last job has ended:%s", tidyTime, left)
	}
	var h histories
	for _, c := range w.clients {
		for i, id := range c.ids {
			s, _ := w.status(id)
			w.book.checkOutcome(w, s)
			h.checkHistory(w, s)
			switch {
			case s.State == wire.Succeeded || w.failedAfterCommit(c, i, s):
				if c.sub.Plan.Jobs[i].Output != "" { // a temporary output is gone by now
					w.checkOutput(c, i, s)
				}
			case s.State == wire.Killed && !c.killSent:
				w.fail("V9: %v was killed without a request: %s", id, s.Error)
			case s.State == wire.Failed && w.harmless && !c.mayFail():
				w.fail("V9: %v failed without a fault that can fail an attempt: %s", id, s.Error)
			}
			if w.book.killAnswered[id] && s.State == wire.Succeeded {
				w.fail("V7: %v succeeded after its kill was answered", id)
			}
		}
	}
	for _, attempt := range w.book.renames {
		if w.book.failAnswered[attempt] {
			w.fail("V7: %s has failed on request, and its output is in place", attempt)
		}
	}
	h.checkSlots(w)
	for _, n := range w.jts {
		if n.applied == len(w.raft.log) {
			w.book.checkFacts(w, n)
		}
	}
}

// mayFail reports whether a job of the client may fail without a fault.
func (c *client) mayFail() bool { return c.killSent || slices.Contains(c.erratic, true) }

// checkOutput compares the files of a job with the output of its maps.
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
	var files []int // maps with files
	for m := 0; m < s.Maps.Total && len(plan.Outputs) > 0; m++ {
		if hasFile(m) {
			files, want = append(files, m), append(want, fmt.Sprintf("%s-m-%05d", mapFilesOutput, m))
		}
	}
	for p := range plan.Reduces {
		want = append(want, fmt.Sprintf("part-r-%05d", p))
	}
	for m := 0; m < s.Maps.Total && plan.Reduces == 0; m++ {
		want = append(want, fmt.Sprintf("part-m-%05d", m))
	}
	if !slices.Equal(names, want) {
		w.fail("V10: the output of %v is %v, want %v", s.ID, names, want)
	}
	chosen := make(map[int]uint64) // by map: digest of the attempt that reduces have read
	for n, name := range want[1+len(files):] {
		data := w.read(out + "/" + name)
		if plan.Reduces == 0 {
			if data != string(mapLine(n)) {
				w.fail("V10: %s of %v says %q", name, s.ID, data)
			}
			continue
		}
		w.checkPartition(c, i, s, n, data, chosen)
	}
	for i, m := range files {
		read, known := chosen[m]
		w.checkMapFile(s.ID, m, w.read(out+"/"+want[1+i]), read, known)
	}
}

// checkPartition checks that a reduce has written its input. If attempts of a map differ, all
// reduces must have read the same one.
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
			w.fail("V10: partition %d of %v lacks the records of map %d", partition, s.ID, m)
		}
		if _, err := fmt.Sscanf(lines[0], "%d %x", &got, &d); err != nil || got != m {
			w.fail("V10: partition %d of %v has %q instead of map %d (%v)", partition, s.ID, lines[0], m, err)
		}
		lines = lines[1:]
		if before, known := chosen[m]; known && before != d {
			w.fail("V10: the reduces of %v have read two outputs of map %d: %x and %x", s.ID, m, before, d)
		}
		chosen[m] = d
		if !c.erratic[i] && d != digest(s.ID, m) {
			w.fail("V10: partition %d of %v has %x from map %d, want %x", partition, s.ID, d, m, digest(s.ID, m))
		}
	}
	if len(lines) > 0 {
		w.fail("V10: partition %d of %v has %q twice, or from no map", partition, s.ID, lines)
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
