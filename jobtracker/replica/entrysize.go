package replica

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft-wal/segment"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

// MaxEntry bounds what is proposed, in bytes. It is far above what the bounds of
// submissions and counters leave of any fact, and far below what raft-wal can read.
const MaxEntry = 16 << 20

// maxReadable is the longest entry, encoded, that raft-wal 0.4.0 reads back. Longer ones
// it writes all the same.
const maxReadable = segment.MaxEntrySize

// ErrUnreadable reports a log with an entry that is too long to be read back, as earlier
// builds could write one.
var ErrUnreadable = errors.New("an entry of the log is too long to be read back")

// tooLong answers a proposal above the bound, which must not come into the log.
func (r *Replica) tooLong(key string, data []byte) bool {
	if len(data) <= r.cfg.maxEntry {
		return false
	}
	err := fmt.Errorf("log entry %q has %d bytes, at most %d", key, len(data), r.cfg.maxEntry)
	r.cfg.Logger.Error("a proposal is refused", "error", err)
	r.events.put(jobtracker.LogEvent{Event: core.Refused{Key: key, Err: err}})
	return true
}

// checkReadable says which of a segment's entries, of the given frames, cannot be read back.
func checkReadable(name string, data []byte, frames []int, base uint64, most int) error {
	for i, frame := range frames {
		if n := len(payload(data, frame)); n > most {
			return fmt.Errorf("%w: entry %d in %s has %d bytes, at most %d; stop the cluster's job trackers, then make a cluster "+
				"of this one alone, which keeps all that its log holds: mrsubmit cluster recover", ErrUnreadable, base+uint64(i), name, n, most)
		}
	}
	return nil
}
