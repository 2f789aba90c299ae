package replica

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
)

// fsm passes committed entries and raft's requests for snapshots to the job tracker, in order. It
// has no facts.
type fsm struct {
	r         *Replica
	delivered uint64        // index of the last entry or snapshot; only raft's FSM goroutine uses it, after the start
	applied   atomic.Uint64 // the same, for other goroutines

	snapshotBegun atomic.Pointer[chan struct{}] // closed when the job tracker begins a snapshot
}

var _ raft.BatchingFSM = (*fsm)(nil)

func newFSM(r *Replica) *fsm { return &fsm{r: r} }

// Apply implements raft.FSM.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. After a restart of raft in this process, it skips
// entries that it has passed on before.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	evs := make([]jobtracker.LogEvent, 0, len(logs))
	for _, l := range logs {
		if l.Index <= f.delivered {
			continue
		}
		last := f.delivered
		f.delivered = l.Index
		if l.Type != raft.LogCommand {
			continue
		}
		f.r.receivedSum(l.Extensions)
		evs = append(evs, jobtracker.LogEvent{Event: core.Entry{Index: l.Index, Term: l.Term, Data: l.Data}})
		if checkDue(last, l.Index, f.r.cfg.checkEvery) {
			evs = append(evs, f.r.checksum(l.Index))
		}
	}
	f.r.events.putWhenRoom(evs)
	f.applied.Store(f.delivered)
	f.r.wakeSupervisor()
	return make([]any, len(logs))
}

const (
	snapshotMagic  = "qrs1"
	snapshotHeader = len(snapshotMagic) + 8
)

// snapshotWait limits how long the job tracker may take to encode its facts.
const snapshotWait = 30 * time.Second

// Snapshot implements raft.FSM. It must not wait: the job tracker may wait for this goroutine.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	s := &snapshot{r: f.r, index: f.delivered, facts: make(chan facts, 1)}
	f.r.events.put(jobtracker.LogEvent{Snapshot: func(data []byte, err error) {
		s.facts <- facts{data, err}
		if begun := f.snapshotBegun.Swap(nil); begun != nil {
			close(*begun)
		}
	}})
	return s, nil
}

// Restore implements raft.FSM.
func (f *fsm) Restore(from io.ReadCloser) error {
	defer from.Close()
	data, err := io.ReadAll(from)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	index, facts, err := decodeSnapshot(data)
	if err != nil {
		return err
	}
	if index <= f.delivered && f.delivered > 0 {
		return nil
	}
	f.delivered = index
	f.r.growth.snapshot.Store(index)
	f.applied.Store(index)
	f.r.events.put(jobtracker.LogEvent{Event: core.Restored{Snapshot: facts}})
	return nil
}

type facts struct {
	data []byte
	err  error
}

// snapshot is a raft.FSMSnapshot.
type snapshot struct {
	r     *Replica
	index uint64
	facts chan facts
}

// Persist implements raft.FSMSnapshot.
func (s *snapshot) Persist(to raft.SnapshotSink) error {
	var encoded facts
	select {
	case encoded = <-s.facts:
	case <-s.r.done:
		return ErrClosed
	case <-time.After(snapshotWait):
		return errors.New("the job tracker did not encode its facts in time")
	}
	if encoded.err != nil {
		return encoded.err
	}
	if _, err := to.Write(encodeSnapshotHeader(s.index)); err != nil {
		return err
	}
	_, err := to.Write(encoded.data)
	return err
}

// Release implements raft.FSMSnapshot.
func (s *snapshot) Release() {}

func encodeSnapshotHeader(index uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(snapshotMagic), index)
}

func decodeSnapshot(data []byte) (index uint64, facts []byte, err error) {
	if len(data) < snapshotHeader || !bytes.HasPrefix(data, []byte(snapshotMagic)) {
		return 0, nil, fmt.Errorf("%w: it begins with %q, not with %q", errFormat, data[:min(len(data), len(snapshotMagic))], snapshotMagic)
	}
	return binary.BigEndian.Uint64(data[len(snapshotMagic):]), data[snapshotHeader:], nil
}
