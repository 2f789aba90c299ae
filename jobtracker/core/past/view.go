package past

import (
	"iter"
	"slices"

	"github.com/quernmr/quern/wire"
)

// chunkSize is the number of attempts in a chunk. A View shares chunks with Attempts, and a change of
// a shared one copies it: 100 KB.
const chunkSize = 1024

// minChunk is how many attempts a chunk has memory for at first.
const minChunk = 4

// chunks holds attempts in the order of their reports.
type chunks struct {
	size   int         // of each chunk but the last one
	chunks [][]Attempt // a chunk grows by appends, and then is full
	shared []bool      // chunks that a View may have
	n      int
	expect int // how many attempts will come at least: chunks have memory for them at once
}

// append adds an attempt. A View does not see it, also if it has the chunk.
func (x *chunks) append(a Attempt) {
	last := x.n / x.size
	if last == len(x.chunks) {
		room := min(max(x.expect-x.n, minChunk), x.size)
		x.chunks, x.shared = append(x.chunks, make([]Attempt, 0, room)), append(x.shared, false)
	}
	if chunk := x.chunks[last]; len(chunk) == cap(chunk) {
		x.chunks[last] = append(make([]Attempt, 0, min(2*cap(chunk), x.size)), chunk...)
	}
	x.chunks[last] = append(x.chunks[last], a)
	x.n++
}

// at returns attempt i, which must not be changed.
func (x *chunks) at(i int) *Attempt { return &x.chunks[i/x.size][i%x.size] }

// change returns attempt i to change it. It copies a chunk that a View may have.
func (x *chunks) change(i int) *Attempt {
	if k := i / x.size; x.shared[k] {
		x.chunks[k], x.shared[k] = slices.Clone(x.chunks[k]), false
	}
	return x.at(i)
}

// View is the attempts of one moment. It never changes, and any goroutine may read it.
type View struct {
	chunks  [][]Attempt
	causes  []string
	latest  []Attempt // beyond the stored ones, the last one first
	omitted int
}

// Freeze returns a View. It copies no stored attempts, and at most MaxOverflow others.
func (x *Attempts) Freeze() View {
	for i := range x.stored.shared {
		x.stored.shared[i] = true
	}
	v := View{chunks: slices.Clone(x.stored.chunks), causes: x.causes, omitted: x.omitted}
	for i := range x.overflow {
		v.latest = append(v.latest, x.overflow[(x.omitted-1-i)%x.maxOverflow])
	}
	return v
}

// Len returns the number of stored attempts.
func (v *View) Len() (n int) {
	for _, chunk := range v.chunks {
		n += len(chunk)
	}
	return n
}

// All yields the stored attempts in the order of their reports.
func (v *View) All() iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for _, chunk := range v.chunks {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}

// Omitted counts the ended attempts that All does not yield.
func (v *View) Omitted() int { return v.omitted }

// Latest yields the last attempts as [Attempts.Latest] does.
func (v *View) Latest() iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for i := range v.latest {
			if !yield(&v.latest[i]) {
				return
			}
		}
		for _, chunk := range slices.Backward(v.chunks) {
			for i := range slices.Backward(chunk) {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}

// Status returns the status of one of the attempts, like [Attempts.Status].
func (v *View) Status(a *Attempt) wire.AttemptStatus { return a.status(v.causes) }
