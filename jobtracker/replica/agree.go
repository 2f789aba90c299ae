package replica

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/jobtracker"
)

// Replicas compare their facts. Each computes a checksum after the same entries, and the leader
// sends its own in the Extensions of its next entry. A replica that differs from its leader ends:
// it cannot know which one is right, but the two must not continue with different facts.
//
//	+-----------+----------------+-------------------+
//	| version 4 | index u64, b-e | checksum u64, b-e |
//	+-----------+----------------+-------------------+
//
// Checksums stay in the log, and a replay compares them again. So raise the version when the
// core's snapshot of the same facts gets other bytes: a new build must not compare its checksum
// with an old one.
const (
	sumVersion = 4
	sumSize    = 17
)

// agreement holds the latest checksums.
type agreement struct {
	mu     sync.Mutex
	ours   sum
	theirs sum
	unsent bool // ours was not sent yet, as a leader does
}

// sum is the checksum of the facts after an entry; index 0: none.
type sum struct{ index, of uint64 }

// due reports whether to compare the facts after entry index; last is the entry before it. All
// replicas must agree for the same log.
func due(last, index, every uint64) bool { return last/every != index/every }

// checksum asks the job tracker for its facts after an entry.
func (r *Replica) checksum(index uint64) jobtracker.LogEvent {
	return jobtracker.LogEvent{Snapshot: func(facts []byte, err error) {
		if err != nil {
			return // the core has halted and reports it
		}
		r.compare(func(a *agreement) { a.ours, a.unsent = sum{index, xxhash.Sum64(facts)}, true })
	}}
}

// compare updates a checksum, and ends the replica if ours and theirs of an entry differ.
func (r *Replica) compare(update func(*agreement)) {
	r.agreement.mu.Lock()
	update(&r.agreement)
	ours, theirs := r.agreement.ours, r.agreement.theirs
	r.agreement.mu.Unlock()
	if ours.index == theirs.index && ours.of != theirs.of {
		r.fail(fmt.Errorf("%s: the facts after entry %d have the checksum %x here and %x at the leader", r.cfg.Dir, ours.index, ours.of, theirs.of))
	}
}

// unsentSum returns the checksum to send with an entry, or nil.
func (r *Replica) unsentSum() []byte {
	a := &r.agreement
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.unsent {
		return nil
	}
	a.unsent = false
	data := make([]byte, 1, sumSize)
	data[0] = sumVersion
	data = binary.BigEndian.AppendUint64(data, a.ours.index)
	return binary.BigEndian.AppendUint64(data, a.ours.of)
}

// receivedSum compares the checksum of an entry. It ignores other versions.
func (r *Replica) receivedSum(data []byte) {
	if len(data) != sumSize || data[0] != sumVersion {
		return
	}
	theirs := sum{binary.BigEndian.Uint64(data[1:]), binary.BigEndian.Uint64(data[9:])}
	r.compare(func(a *agreement) { a.theirs = theirs })
}
