package replica

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft-wal/segment"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

// MaxEntry bounds the bytes of a proposal. Facts are far smaller, by the bounds of submissions
// and counters, and raft-wal reads far longer entries.
const MaxEntry = 16 << 20

// maxReadable bounds the encoded entries that raft-wal 0.4.0 can read. It writes longer ones.
const maxReadable = segment.MaxEntrySize

// ErrUnreadable reports an entry that is too long to be read back. Earlier builds could write
// one.
var ErrUnreadable = errors.New("an entry of the log is too long to be read back")

// tooLong refuses a proposal above the bound.
func (r *Replica) tooLong(key string, data []byte) bool {
	if len(data) <= r.cfg.maxEntry {
		return false
	}
	err := fmt.Errorf("log entry %q has %d bytes, at most %d", key, len(data), r.cfg.maxEntry)
	r.cfg.Logger.Error("a proposal is refused", "error", err)
	r.events.put(jobtracker.LogEvent{Event: core.Refused{Key: key, Err: err}})
	return true
}

// checkReadable fails if an entry of a segment cannot be read back.
func checkReadable(name string, data []byte, frames []int, base uint64, most int) error {
	for i, frame := range frames {
		if n := len(payload(data, frame)); n > most {
			return fmt.Errorf("%w: entry %d in %s has %d bytes, at most %d; stop the cluster's job trackers, then make this "+
				"one the only voter, which keeps its whole log: mrsubmit cluster recover", ErrUnreadable, base+uint64(i), name, n, most)
		}
	}
	return nil
}
