package mapreduce

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	mrruntime "github.com/quernmr/quern/runtime"
)

// sharing is the Collector of a map of a join that spreads keys; see [mrruntime.Division]. Of such a key, each record of
// the large side goes to one partition, and each record of the small side to all of them. A record's partition follows
// from its value and from its place in the input, so a rerun of the map has the same output.
//
// A partition does not see the key's records in others, and all of them have the values of the small side. If these have
// no partner, one partition must tell, which is home, the key's own partition. So maps send notes, which are records
// without value: a map that has spread records sends one home, and a map that has sent records to all partitions sends
// one to each but home. A partition with a note returns no value of the small side without a partner.
type sharing struct {
	out  mrruntime.Collector
	in   splitReader
	n    int
	keys map[string]*sharedKey // without the byte of the side
	note []byte
}

type sharedKey struct {
	side         byte // the large one
	home         int
	spread, sent bool // the map has emitted records of this kind
}

// newSharing returns nil if no key is spread.
func newSharing(rt *mrruntime.Task, in splitReader, out mrruntime.Collector) *sharing {
	if rt.Division == nil || len(rt.Division.Spread) == 0 {
		return nil
	}
	s := &sharing{out: out, in: in, n: rt.Partitions, keys: make(map[string]*sharedKey)}
	for _, key := range rt.Division.Spread {
		last := len(key) - 1
		s.keys[string(key[:last])] = &sharedKey{side: key[last]}
	}
	return s
}

// Collect collects a record. The partition home is the one of its key.
func (s *sharing) Collect(home int, key, value []byte) error {
	last := len(key) - 1
	shared := s.keys[string(key[:last])]
	switch {
	case shared == nil:
		return s.out.Collect(home, key, value)
	case shared.side == key[last]:
		shared.home, shared.spread = home, true
		return s.out.Collect(s.partition(value), key, value)
	}
	shared.home, shared.sent = home, true
	for p := range s.n {
		if err := s.out.Collect(p, key, value); err != nil {
			return err
		}
	}
	return nil
}

// partition returns the partition of a record of a large side.
func (s *sharing) partition(value []byte) int {
	_, offset := s.in.Place()
	p, _ := bits.Mul64(mix(xxhash.Sum64(value)+uint64(offset)), uint64(s.n))
	return int(p)
}

// finish sends the notes.
func (s *sharing) finish() error {
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		shared := s.keys[key]
		s.note = append(append(s.note[:0], key...), shared.side+noteOf)
		for p := range s.n {
			if p == shared.home && !shared.spread || p != shared.home && !shared.sent {
				continue
			}
			if err := s.out.Collect(p, s.note, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// sharedSides is the map output of a join that treats each pair by itself.
type sharedSides[K, A, B any] struct{ sides[K, A, B] }

// spreads reports whether keys may be spread. Combiners leave few values of a key.
func (s sharedSides[K, A, B]) spreads() bool {
	return !s.combines() && !s.ordered() && s.left.partition == nil
}

func (s sharedSides[K, A, B]) maps(job *jobSpec) []mapFunc {
	all := s.sides.maps(job)
	for i, run := range all {
		all[i] = func(rt *mrruntime.Task, in splitReader, out mrruntime.Collector) error {
			shared := newSharing(rt, in, out)
			if shared == nil {
				return run(rt, in, out)
			}
			if err := run(rt, in, shared); err != nil {
				return err
			}
			return shared.finish()
		}
	}
	return all
}
