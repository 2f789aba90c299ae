package wire

import (
	"fmt"
	"slices"
)

// OutputsPage is the number of maps for which [KnownOutputs] has one sum, and the maximum number of
// outputs in an [OutputBlock].
const OutputsPage = 1024

// OutputBlock is an encoded list of map outputs. A job tracker encodes it once, and sends it to all
// homes. It is the [Marshal] of a struct with one list for each field of [MapOutput]:
// testdata/golden/messages.txt has an example.
type OutputBlock []byte

// outputColumns is the content of an OutputBlock. Outputs name their trackers by index in Trackers
// and Addrs: many outputs are on one tracker.
type outputColumns struct {
	Trackers []string `msgpack:"Trackers"`
	Addrs    []string `msgpack:"Addrs"`
	Maps     []int    `msgpack:"Maps"`
	Attempts []int    `msgpack:"Attempts"`
	At       []int    `msgpack:"At"` // index in Trackers; -1: the map was given up
	Bytes    []int64  `msgpack:"Bytes"`
	Digests  []uint64 `msgpack:"Digests"`
}

// NewOutputBlock encodes outputs.
func NewOutputBlock(outputs []MapOutput) OutputBlock {
	var e OutputEncoder
	for i := range outputs {
		e.Add(&outputs[i])
	}
	return e.Block()
}

// OutputEncoder encodes blocks of outputs, one after the other. It keeps its memory for the next one: a leader
// encodes many small ones. Its zero value is ready.
type OutputEncoder struct {
	columns outputColumns
	known   map[outputPlace]int // indexes in columns.Trackers
	numbers map[int32]int       // the same by number, see AddAt
	buffer  []byte
}

type outputPlace struct{ tracker, addr string }

// Add adds an output to the next block.
func (e *OutputEncoder) Add(o *MapOutput) {
	at := -1
	if !o.GivenUp {
		at = e.place(outputPlace{o.Tracker, o.Addr})
	}
	e.add(o, at)
}

// AddAt is Add for an output on a tracker with a number. Others with the same number are at the same place.
func (e *OutputEncoder) AddAt(o *MapOutput, number int32) {
	at, ok := e.numbers[number]
	if !ok {
		if e.numbers == nil {
			e.numbers = make(map[int32]int)
		}
		at = e.place(outputPlace{o.Tracker, o.Addr})
		e.numbers[number] = at
	}
	e.add(o, at)
}

func (e *OutputEncoder) add(o *MapOutput, at int) {
	c := &e.columns
	c.Maps, c.Attempts, c.At = append(c.Maps, o.Map), append(c.Attempts, o.Attempt), append(c.At, at)
	c.Bytes, c.Digests = append(c.Bytes, o.Bytes), append(c.Digests, o.Digest)
}

// place returns the index of a place, which it may have to add.
func (e *OutputEncoder) place(p outputPlace) int {
	at, ok := e.known[p]
	if !ok {
		if e.known == nil {
			e.known = make(map[outputPlace]int)
		}
		at = len(e.known)
		e.known[p] = at
		e.columns.Trackers, e.columns.Addrs = append(e.columns.Trackers, p.tracker), append(e.columns.Addrs, p.addr)
	}
	return at
}

// Len returns the number of outputs in the next block.
func (e *OutputEncoder) Len() int { return len(e.columns.Maps) }

// Block returns the block, and begins the next one.
func (e *OutputEncoder) Block() OutputBlock {
	c := e.columns
	if len(e.known) == 0 {
		c.Trackers, c.Addrs = nil, nil // the bytes must not depend on earlier blocks
	}
	buffer, err := appendBody(e.buffer[:0], &c)
	if err != nil {
		panic(fmt.Sprintf("wire: %v", err)) // numbers and texts always have an encoding
	}
	e.buffer = buffer
	clear(e.known)
	clear(e.numbers)
	e.columns = outputColumns{e.columns.Trackers[:0], e.columns.Addrs[:0], c.Maps[:0], c.Attempts[:0], c.At[:0], c.Bytes[:0], c.Digests[:0]}
	return slices.Clone(buffer)
}

// Outputs decodes a block. It refuses lists that do not fit together with [ErrMalformed].
func (b OutputBlock) Outputs() ([]MapOutput, error) {
	var c outputColumns
	if err := decode(b, &c, memoryPerByte); err != nil {
		return nil, err
	}
	n := len(c.Maps)
	if n > OutputsPage || len(c.Addrs) != len(c.Trackers) || len(c.Attempts) != n || len(c.At) != n || len(c.Bytes) != n || len(c.Digests) != n {
		return nil, fmt.Errorf("%w: a block of map outputs with lists of different lengths, or with more than %d outputs", ErrMalformed, OutputsPage)
	}
	outputs := make([]MapOutput, n)
	for i := range outputs {
		o := &outputs[i]
		o.Map, o.Attempt, o.Bytes, o.Digest = c.Maps[i], c.Attempts[i], c.Bytes[i], c.Digests[i]
		switch at := c.At[i]; {
		case at == -1:
			o.GivenUp = true
		case at < 0 || at >= len(c.Trackers):
			return nil, fmt.Errorf("%w: the output of map %d is on tracker %d of %d", ErrMalformed, o.Map, at, len(c.Trackers))
		default:
			o.Tracker, o.Addr = c.Trackers[at], c.Addrs[at]
		}
	}
	return outputs, nil
}

// OutputsOf makes the message for outputs of one job.
func OutputsOf(epoch uint64, job JobID, outputs ...MapOutput) *Outputs {
	m := &Outputs{Epoch: epoch}
	for some := range slices.Chunk(outputs, OutputsPage) {
		m.Lists = append(m.Lists, OutputList{Job: job, N: len(some), Block: NewOutputBlock(some)})
	}
	return m
}

// Count returns the number of outputs in all lists.
func (m *Outputs) Count() (n int) {
	for i := range m.Lists {
		n += m.Lists[i].N
	}
	return n
}

// Sum is a hash of an output, and of where it is. The sum over a page of a job's maps, which does not depend on
// their order, tells whether a tracker knows the outputs of these maps.
func (o *MapOutput) Sum() uint64 { return o.SumAt(PlaceHash(o.Tracker, o.Addr)) }

// SumAt is Sum for an output at a place with a known hash.
func (o *MapOutput) SumAt(place uint64) uint64 {
	hash := place
	for _, x := range [...]uint64{uint64(o.Map), uint64(o.Attempt), o.Digest, uint64(o.Bytes)} {
		hash = mix(hash, x)
	}
	return mix(hash, 0)
}

// PlaceHash is a hash of where outputs are.
func PlaceHash(tracker, addr string) uint64 {
	hash := uint64(14695981039346656037)
	for _, text := range []string{tracker, addr} {
		hash = mix(hash, uint64(len(text)))
		for i := range len(text) {
			hash = (hash ^ uint64(text[i])) * 1099511628211
		}
	}
	return hash
}

func mix(hash, x uint64) uint64 {
	hash = (hash ^ x) * 1099511628211
	return hash ^ hash>>29
}
