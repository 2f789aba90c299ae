package mapreduce

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// broadcastRows is a small side in memory. Rows of a key are chained in their order. The keys have no pointers, because a
// map that reads much collects garbage often, and would follow all of them each time.
type broadcastRows[B any] struct {
	keys   []byte            // encoded, one after the other
	chains []rowChain        // by key
	byHash map[uint64]uint32 // 1 + the last chain with that hash
	rows   []broadcastRow[B]
	seed   maphash.Seed
	filter keyFilter // of keys
}

type rowChain struct {
	from, to    int // the key
	first, last int32
	next        uint32 // 1 + another chain with the same hash; 0: none
}

type broadcastRow[B any] struct {
	value B
	next  int32 // 0: none
}

// find returns the chain of an encoded key with that hash, or nil.
func (r *broadcastRows[B]) find(key []byte, hash uint64) *rowChain {
	for n := r.byHash[hash]; n != 0; n = r.chains[n-1].next {
		if c := &r.chains[n-1]; bytes.Equal(r.keys[c.from:c.to], key) {
			return c
		}
	}
	return nil
}

// add appends a row to the chain of a key.
func (r *broadcastRows[B]) add(key []byte, row broadcastRow[B]) {
	n, hash := int32(len(r.rows)), maphash.Bytes(r.seed, key)
	r.rows = append(r.rows, row)
	if c := r.find(key, hash); c != nil {
		r.rows[c.last].next = n
		c.last = n
		return
	}
	from := len(r.keys)
	r.keys = append(r.keys, key...)
	r.chains = append(r.chains, rowChain{from, len(r.keys), n, n, r.byHash[hash]})
	r.byHash[hash] = uint32(len(r.chains))
}

// keyFilter tells for most keys outside a set that they are not in it: about 97 of 100. It takes one to two bytes a key,
// so it stays in the processor's cache when the set does not. It is a Bloom filter with the three bits of a key in
// one word.
type keyFilter struct {
	words []uint64 // their number is a power of two
}

// newKeyFilter makes the filter of the keys with these hashes.
func newKeyFilter[V any](hashes map[uint64]V) keyFilter {
	f := keyFilter{make([]uint64, 1<<bits.Len(uint(len(hashes)/8)))}
	for hash := range hashes {
		word, mask := f.place(hash)
		*word |= mask
	}
	return f
}

func (f *keyFilter) mayHave(hash uint64) bool {
	word, mask := f.place(hash)
	return *word&mask == mask
}

// place returns the word and the bits of a key's hash.
func (f *keyFilter) place(hash uint64) (word *uint64, mask uint64) {
	return &f.words[hash>>18&uint64(len(f.words)-1)], 1<<(hash&63) | 1<<(hash>>6&63) | 1<<(hash>>12&63)
}

// lookup finds the rows of each record of the large side.
type lookup[K, A, B any] struct {
	t    *Task
	rows *broadcastRows[B]
	key  *codec[K]
	left bool
	kbuf []byte

	fresh bool      // no key has been looked up
	last  []byte    // the encoded key that was looked up last: equal keys often follow each other
	chain *rowChain // of last; nil: none

	k     K
	a     A
	b     B  // a copy of the row's value, as the job's code gets it
	match *B // nil: the record has no row
}

// each calls f for every row of the current key.
func (j *lookup[K, A, B]) each(f func() error) error {
	if key := j.key.encode(&j.kbuf, j.k); j.fresh || !bytes.Equal(key, j.last) {
		hash := maphash.Bytes(j.rows.seed, key)
		if j.chain = nil; j.rows.filter.mayHave(hash) {
			j.chain = j.rows.find(key, hash)
		}
		j.last, j.fresh = append(j.last[:0], key...), false
	}
	if j.chain == nil {
		if j.match = nil; j.left {
			return f()
		}
		return nil
	}
	for n := j.chain.first; n != 0 && j.t.err == nil; n = j.rows.rows[n].next {
		j.b = j.rows.rows[n].value
		j.match = &j.b
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}
