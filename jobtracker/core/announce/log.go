// Package announce tells the homes of partitions where map outputs are: which of them each home
// tracker does not know yet, and when it gets the next message.
//
// A [Log] has the outputs of one job, once for all trackers:
//
//	pages    one for each wire.OutputsPage maps, with the outputs that these maps have now
//	journal  the maps with outputs that were chosen lately, in this order
//
// A [Reader] is a tracker's position in a log: the pages that it has to get, and the length of the
// journal that it has got. A tracker gets pages when a partition is placed there, and on a new stream.
// From then on it follows the journal. Pages and pieces of the journal are encoded once, and
// all messages share the bytes. After a change of leader, a tracker says what it knows of each page
// ([wire.KnownOutputs]), and gets only the pages in which it misses something.
//
// A [Line] has the readers of one tracker that have something to get. Its tokens limit the messages to the
// tracker, for all jobs together: [Burst] at once, then [PerTick] in each [Tick]. Ticks are the same for all
// trackers, so trackers that wait for tokens get the same pieces of the journal.
//
// The state of a log is O(maps + trackers). Nothing here is safe for concurrent use.
package announce

import (
	"maps"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// Log has the announcements of one job.
type Log struct {
	job     wire.JobID
	maps    int
	current func(m int) (wire.MapOutput, int32, bool)
	encoder *wire.OutputEncoder
	encoded int // outputs encoded so far
	pages   []page
	sums    []uint64 // by map: what Add has added to its page's sum; nil: no output was added yet
	journal []int32  // maps, beginning with the entry at position begin
	begin   int
	changes int // how often an output was added or removed
	recent  [recentPieces]piece
	oldest  int // index in recent
	readers map[int]*Reader
}

// page is what a log knows of wire.OutputsPage maps.
type page struct {
	outputs int    // number of outputs
	sum     uint64 // sum of wire.MapOutput.Sum
	encoded wire.OutputList
}

// piece is an encoded part of the journal. Trackers that follow it usually need the same one.
type piece struct {
	from, to, changes int
	encoded           wire.OutputList
}

const recentPieces = 4

// A journal keeps the last minJournal entries, and at most twice as many. A reader that has not got older
// ones gets their pages.
const minJournal = 4 * wire.OutputsPage

// NewLog makes the log of a job with a number of maps. current returns a map's output, and the number of the
// place where it is, as for wire.OutputEncoder.AddAt; false: it has none. Logs may share an encoder.
func NewLog(job wire.JobID, n int, encoder *wire.OutputEncoder, current func(m int) (o wire.MapOutput, place int32, ok bool)) *Log {
	return &Log{
		job: job, maps: n, current: current, encoder: encoder, readers: make(map[int]*Reader),
		pages: make([]page, (n+wire.OutputsPage-1)/wire.OutputsPage),
	}
}

// Add announces a new output of a map, which had none. sum is its wire.MapOutput.Sum.
func (l *Log) Add(m int, sum uint64) {
	p := l.changed(m)
	p.outputs++
	if l.sums == nil {
		l.sums, l.journal = make([]uint64, l.maps), make([]int32, 0, min(l.maps, 2*minJournal))
	}
	l.sums[m] = sum
	p.sum += sum
	l.journal = append(l.journal, int32(m))
	if len(l.journal) == 2*minJournal {
		l.shorten(minJournal)
	}
}

// Remove withdraws the output of a map: readers that have not got it never get it. The output's tracker may
// have another address since the output was added.
func (l *Log) Remove(m int) {
	p := l.changed(m)
	p.outputs--
	p.sum -= l.sums[m]
}

func (l *Log) changed(m int) *page {
	l.changes++
	p := &l.pages[m/wire.OutputsPage]
	p.encoded = wire.OutputList{}
	return p
}

// shorten drops the first n entries of the journal.
func (l *Log) shorten(n int) {
	for _, r := range l.readers {
		for i := max(r.got-l.begin, 0); i < n; i++ {
			r.pages.Add(int(l.journal[i]) / wire.OutputsPage)
		}
		r.got = max(r.got, l.begin+n)
	}
	l.journal = slices.Clone(l.journal[n:])
	l.begin += n
}

func (l *Log) end() int { return l.begin + len(l.journal) }

// Follow adds a reader for the tracker with an index, unless it has one.
func (l *Log) Follow(tracker int) {
	if l.readers[tracker] == nil {
		l.readers[tracker] = &Reader{log: l, got: l.end()}
	}
}

// Forget removes the reader of a tracker: it gets no more of this log.
func (l *Log) Forget(tracker int) {
	if r := l.readers[tracker]; r != nil {
		r.forgotten = true
		delete(l.readers, tracker)
	}
}

// ForgetAll removes all readers.
func (l *Log) ForgetAll() {
	for _, tracker := range slices.Collect(maps.Keys(l.readers)) {
		l.Forget(tracker)
	}
}

// Reader returns the reader of a tracker, or nil.
func (l *Log) Reader(tracker int) *Reader { return l.readers[tracker] }

func (l *Log) encode(maps func(yield func(m int) bool)) wire.OutputList {
	for m := range maps {
		switch o, place, ok := l.current(m); {
		case !ok:
		case o.GivenUp:
			l.encoder.Add(&o)
		default:
			l.encoder.AddAt(&o, place)
		}
	}
	n := l.encoder.Len()
	l.encoded += n
	if n == 0 {
		return wire.OutputList{Job: l.job}
	}
	return wire.OutputList{Job: l.job, N: n, Block: l.encoder.Block()}
}

func (l *Log) page(i int) wire.OutputList {
	p := &l.pages[i]
	if p.encoded.Block == nil {
		p.encoded = l.encode(func(yield func(m int) bool) {
			for m := i * wire.OutputsPage; m < min((i+1)*wire.OutputsPage, l.maps) && yield(m); m++ {
			}
		})
	}
	return p.encoded
}

func (l *Log) piece(from, to int) wire.OutputList {
	for i := range l.recent {
		if x := &l.recent[i]; x.from == from && x.to == to && x.changes == l.changes {
			return x.encoded
		}
	}
	l.oldest = (l.oldest + 1) % recentPieces
	x := &l.recent[l.oldest]
	*x = piece{from: from, to: to, changes: l.changes}
	x.encoded = l.encode(func(yield func(m int) bool) {
		for _, m := range l.journal[from-l.begin : to-l.begin] {
			if !yield(int(m)) {
				return
			}
		}
	})
	return x.encoded
}

// Reader is a tracker's position in a log.
type Reader struct {
	log       *Log
	pages     taskset.Set // it has to get
	got       int         // length of the journal that it has got; pages stand for entries that it has missed
	known     []uint64    // what the tracker's inventory says; nil: it has not come, or was used
	waiting   bool        // in its tracker's Line
	forgotten bool
}

// Knows notes what a tracker's inventory says, for the next All.
func (r *Reader) Knows(sums []uint64) { r.known = sums }

// All makes the tracker get all outputs again, without the pages that it knows.
func (r *Reader) All() {
	for i := range r.log.pages {
		p := &r.log.pages[i]
		r.pages.Set(i, p.outputs > 0 && (i >= len(r.known) || r.known[i] != p.sum))
	}
	r.got, r.known = r.log.end(), nil
}

// Pending reports whether the tracker has something to get.
func (r *Reader) Pending() bool {
	return !r.forgotten && (r.pages.Len() > 0 || r.got < r.log.end())
}

// Waiting reports whether the reader waits in its tracker's Line.
func (r *Reader) Waiting() bool { return r.waiting }

// next takes the next page or piece. It may have no outputs, if all were withdrawn.
func (r *Reader) next() wire.OutputList {
	if i := r.pages.Next(0); i >= 0 {
		r.pages.Remove(i)
		return r.log.page(i)
	}
	from := r.got
	r.got = min(from+wire.OutputsPage, r.log.end())
	return r.log.piece(from, r.got)
}
