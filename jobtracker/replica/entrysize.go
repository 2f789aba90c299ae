package replica

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft-wal/segment"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

// MaxEntry is the maximum size of a proposal in bytes. The limits of submissions and counters keep
// facts far below it, and raft-wal can read far longer entries.
const MaxEntry = 16 << 20

// maxReadable is the longest encoded entry that raft-wal 0.4.0 can read. It also writes longer
// ones.
const maxReadable = segment.MaxEntrySize

// ErrUnreadable reports an entry that an earlier build has written, and that is too long to read.
var ErrUnreadable = errors.New("an entry of the log is too long to be read back")

// rejectLong refuses a proposal that is too long, and reports whether it did.
func (r *Replica) rejectLong(key string, data []byte) bool {
	if len(data) <= r.cfg.maxEntry {
		return false
	}
	err := fmt.Errorf("log entry %q has %d bytes, at most %d", key, len(data), r.cfg.maxEntry)
	r.cfg.Logger.Error("a proposal is refused", "error", err)
	r.events.put(jobtracker.LogEvent{Event: core.Refused{Key: key, Err: err}})
	return true
}

// checkReadable fails if an entry of a segment has more than limit bytes.
func checkReadable(name string, data []byte, frames []int, base uint64, limit int) error {
	for i, frame := range frames {
		if n := len(payload(data, frame)); n > limit {
			return fmt.Errorf("%w: entry %d in %s has %d bytes, at most %d; stop the cluster's job trackers, then make this "+
				"one the only voter, which keeps its whole log: jobtracker recover", ErrUnreadable, base+uint64(i), name, n, limit)
		}
	}
	return nil
}
