package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/wire"
)

// A record that ends attempts of its task is skipped, if the job asks for that. Attempts report the
// record or group in which they ended. The log has what each task skips before an attempt skips it:
// all later attempts of the task skip the same, under every leader. So the output of a map that
// reruns has equal records, unless the log skips more since.

// skipMode returns what a new attempt of a task skips; nil: its job skips nothing.
func (j *job) skipMode(tk *task) *wire.Skip {
	if j.spec.ForKind(tk.kind).MaxSkip == 0 {
		return nil
	}
	changes, ranges := j.facts.Skips(tk.kind, int(tk.n), j.inputDigest(tk.kind))
	return &wire.Skip{Changes: changes, Ranges: ranges}
}

// inputDigest is the digest that identifies the input of tasks of a kind: the maps' input does not
// change.
func (j *job) inputDigest(k wire.Kind) uint64 {
	if k == wire.Reduce {
		return j.outputs.digestSum
	}
	return 0
}

// skipRecord proposes to skip the record in which an attempt ended, once enough attempts of its task
// have failed. It ignores reports of attempts that skipped less, or read other input.
func (l *leader) skipRecord(j *job, tk *task, at *wire.Position) {
	most := j.spec.ForKind(tk.kind).MaxSkip
	if at == nil || most == 0 || at.Digest != j.inputDigest(tk.kind) {
		return
	}
	changes, ranges := j.facts.Skips(tk.kind, int(tk.n), at.Digest)
	if at.Changes != changes || len(ranges) == 0 && j.faults.Failures(tk.key()) < j.spec.SkipStart {
		return
	}
	r := nextSkip(ranges, at.Record, most)
	x := &facts.Skipped{Job: j.facts.N(), Kind: tk.kind, Task: int(tk.n), From: r.From, To: r.To, Digest: at.Digest}
	if !x.Fits(l.facts) {
		return
	}
	if j.bad.skipping == nil {
		j.bad.skipping = make(map[faults.Task]string)
	}
	j.bad.skipping[tk.key()] = at.Where
	l.updateTask(j, tk)
	l.propose(x)
}

// nextSkip returns the range to skip after an attempt that skipped ranges has ended in a record.
// Usually this is that record. If it follows the last skipped range closely, skipping that range may
// not have helped: code that collects records and processes them together then ends a range later.
// So the range more than doubles, towards earlier records too, up to most records.
func nextSkip(ranges []wire.RecordRange, record, most int64) wire.RecordRange {
	length := int64(1)
	if n := len(ranges); n > 0 {
		last := ranges[n-1]
		if survived := record - last.To; survived >= 0 && survived < last.To-last.From && last.To-last.From < most {
			length = min(most, 2*(record-last.From)+1)
		}
	}
	return wire.RecordRange{From: max(0, record+1-length), To: record + 1}
}

// skipped acts on an entry of the log. Other attempts of the task skip less: they end.
func (l *leader) skipped(x *facts.Skipped, changed bool) {
	j := l.jobs[x.Job]
	if j == nil || !j.facts.Running() {
		return
	}
	tk := j.task(wire.TaskID{Job: j.id, Kind: x.Kind, N: x.Task})
	where := j.bad.skipping[tk.key()]
	delete(j.bad.skipping, tk.key())
	if changed {
		if where != "" {
			where = " (" + where + ")"
		}
		j.faults.AddTrouble(fmt.Sprintf("%v skips %s from now on: an attempt ended there%s", j.idOf(tk), wire.RecordRange{From: x.From, To: x.To}.Text(skipUnit(x.Kind)), where))
		for a := range tk.all() {
			l.killAttempt(a, "later attempts of the task skip more")
		}
		for _, f := range j.faults.TakeBlames(tk.key()) { // the record was at fault
			j.trackers.Excuse(f.Tracker)
		}
	}
	l.updateTask(j, tk)
	l.touch(j)
}

// skipUnit names what tasks of a kind skip.
func skipUnit(k wire.Kind) string {
	if k == wire.Reduce {
		return "group"
	}
	return "record"
}

// usedUpSkipping returns why a task that skips records has no attempt left; empty: it skips none. It
// tells the last failure: later attempts may have skipped the record of the first one. If that failure
// is in a record too, more attempts may help.
func (j *job) usedUpSkipping(tk *task, last *faults.Failure, inRecord bool) string {
	_, ranges := j.facts.Skips(tk.kind, int(tk.n), j.inputDigest(tk.kind))
	if len(ranges) == 0 {
		return ""
	}
	hint := ""
	if inRecord {
		hint = fmt.Sprintf("; raise mapreduce.%v.maxattempts, which is %d", tk.kind, j.spec.ForKind(tk.kind).MaxAttempts)
	}
	return fmt.Sprintf("%v failed %d times (%s skipped%s), last %v",
		j.idOf(tk), j.faults.Failures(tk.key()), plural(countRecords(ranges), skipUnit(tk.kind)), hint, last)
}

// countRecords counts the records in ranges, which may overlap.
func countRecords(ranges []wire.RecordRange) int {
	sorted := slices.SortedFunc(slices.Values(ranges), func(x, y wire.RecordRange) int { return cmp.Compare(x.From, y.From) })
	n, end := int64(0), int64(0)
	for _, r := range sorted {
		n += max(0, r.To-max(r.From, end))
		end = max(end, r.To)
	}
	return int(n)
}

// skipsOthers reports whether an attempt of a map or reduce skips other records than the log says.
func (j *job) skipsOthers(r *wire.Report) bool {
	changes, _ := j.facts.Skips(r.Attempt.Task.Kind, r.Attempt.Task.N, 0)
	return r.Attempt.Task.Kind.Slotted() && r.SkipChanges != changes
}
