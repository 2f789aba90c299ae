package replica

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/jobtracker"
)

// Replicas compare their facts. Each computes a checksum after the same entries, and the leader
// sends its checksum in the Extensions of its next entry. A replica with another checksum than its
// leader fails: it cannot know which one is right, but the two must not continue with different
// facts.
//
//	+-----------+----------------+-------------------+
//	| version 4 | index u64, b-e | checksum u64, b-e |
//	+-----------+----------------+-------------------+
//
// Checksums stay in the log, and a replay compares them again. So raise sumVersion if the core
// encodes the same facts as other bytes: new and old builds must not compare their checksums.
const (
	sumVersion = 4
	sumSize    = 17
)

// agreement holds the latest checksums.
type agreement struct {
	mu     sync.Mutex
	ours   sum
	theirs sum
	unsent bool // ours was not sent yet; only a leader sends it
}

// sum is the checksum of the facts after an entry; index 0: none.
type sum struct{ index, value uint64 }

// checkDue reports whether to compare the facts after entry index; last is the index before it. The
// answer depends only on the log, so that all replicas compare the same facts.
func checkDue(last, index, every uint64) bool { return last/every != index/every }

// checksum returns an event that asks the job tracker for its facts after an entry.
func (r *Replica) checksum(index uint64) jobtracker.LogEvent {
	return jobtracker.LogEvent{Snapshot: func(facts []byte, err error) {
		if err != nil {
			return // the core has halted and reports it
		}
		r.compare(func(a *agreement) { a.ours, a.unsent = sum{index, xxhash.Sum64(facts)}, true })
	}}
}

// compare calls update. The replica fails if its checksum then differs from the leader's.
func (r *Replica) compare(update func(*agreement)) {
	r.agreement.mu.Lock()
	update(&r.agreement)
	ours, theirs := r.agreement.ours, r.agreement.theirs
	r.agreement.mu.Unlock()
	if ours.index == theirs.index && ours.value != theirs.value {
		r.fail(fmt.Errorf("%s: the facts after entry %d have the checksum %x here and %x at the leader", r.cfg.Dir, ours.index, ours.value, theirs.value))
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
	return binary.BigEndian.AppendUint64(data, a.ours.value)
}

// receivedSum compares the checksum of an entry. It ignores other versions.
func (r *Replica) receivedSum(data []byte) {
	if len(data) != sumSize || data[0] != sumVersion {
		return
	}
	theirs := sum{binary.BigEndian.Uint64(data[1:]), binary.BigEndian.Uint64(data[9:])}
	r.compare(func(a *agreement) { a.theirs = theirs })
}
