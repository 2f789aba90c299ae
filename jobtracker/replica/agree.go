package replica

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/jobtracker"
)

// Replicas compare their facts: each takes the checksum of them after the same
// entries, and the leader sends its own along with its next entry, in raft's
// Extensions. One that has others than its leader ends; which of them is right it
// cannot know, but nobody must go on as if they were the same.
//
//	+-----------+----------------+-------------------+
//	| version 4 | index u64, b-e | checksum u64, b-e |
//	+-----------+----------------+-------------------+
//
// Checksums are kept in the log and compared again when it is replayed. So the
// version rises too when the core's snapshot of the same facts gets other bytes: a
// new build must not differ from what an old one has written.
const (
	sumVersion = 4
	sumSize    = 17
)

// agreement holds the latest checksums.
type agreement struct {
	mu     sync.Mutex
	ours   sum
	theirs sum
	unsent bool // ours, by a leader
}

// sum is the checksum of the facts as of an entry; index 0: none.
type sum struct{ index, of uint64 }

// due says whether the facts are to be compared after entry index, when the one before
// it was last. All replicas must say the same of the same log.
func due(last, index, every uint64) bool { return last/every != index/every }

// checksum asks the job tracker for its facts as of an entry.
func (r *Replica) checksum(index uint64) jobtracker.LogEvent {
	return jobtracker.LogEvent{Snapshot: func(facts []byte, err error) {
		if err != nil {
			return // it has halted, and says so itself
		}
		r.compare(func(a *agreement) { a.ours, a.unsent = sum{index, xxhash.Sum64(facts)}, true })
	}}
}

// compare takes in a checksum, and ends the replica when the two of one entry differ.
func (r *Replica) compare(take func(*agreement)) {
	r.agreement.mu.Lock()
	take(&r.agreement)
	ours, theirs := r.agreement.ours, r.agreement.theirs
	r.agreement.mu.Unlock()
	if ours.index == theirs.index && ours.of != theirs.of {
		r.fail(fmt.Errorf("%s: the facts as of entry %d have the checksum %x here and %x at the leader", r.cfg.Dir, ours.index, ours.of, theirs.of))
	}
}

// unsentSum is what to send along with an entry, or nil.
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

// receivedSum takes in what came along with an entry. Another version is not known
// here, and says nothing.
func (r *Replica) receivedSum(data []byte) {
	if len(data) != sumSize || data[0] != sumVersion {
		return
	}
	theirs := sum{binary.BigEndian.Uint64(data[1:]), binary.BigEndian.Uint64(data[9:])}
	r.compare(func(a *agreement) { a.theirs = theirs })
}
