package jobtracker

import (
	"fmt"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

func TestSnapshot(t *testing.T) {
	log := NewMemoryLog()
	s := start(t, func(c *Config) { c.Log = log })
	if _, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1)); err != nil {
		t.Fatal(err)
	}
	snapshots := make(chan []byte, 1)
	log.mu.Lock()
	log.queue = append(log.queue, LogEvent{Snapshot: func(data []byte, _ error) { snapshots <- data }})
	select {
	case log.ready <- struct{}{}:
	default:
	}
	log.mu.Unlock()
	restored := core.New(core.Config{})
	restored.Step(0, core.Restored{Snapshot: <-snapshots})
	if restored.Applied() != 3 {
		t.Errorf("the snapshot is of entry %d", restored.Applied())
	}
}

// TestSnapshotWhileLeaderIsMade tests that a snapshot has all entries before it, although they wait until the leader of
// many jobs is made.
func TestSnapshotWhileLeaderIsMade(t *testing.T) {
	for name, closing := range map[string]bool{"running": false, "closing": true} {
		t.Run(name, func(t *testing.T) {
			log := &closableLog{MemoryLog: &MemoryLog{ready: make(chan struct{}, 1)}, answered: make(chan struct{})}
			s := New(Config{ID: "jt", Log: log, FS: mem.New(1 << 20)})
			index := uint64(0)
			entry := func(x facts.Fact) LogEvent {
				index++
				return LogEvent{Event: core.Entry{Index: index, Term: 1, Data: facts.Encode(x)}}
			}
			s.fromLog(entry(&facts.LeaderElected{Leader: "other"}))
			s.fromLog(entry(&facts.Bootstrapped{Start: 1, Cluster: "c"}))
			for i := range 3000 {
				s.fromLog(entry(&facts.Submitted{Submission: wire.Submission{Key: fmt.Sprint(i), Staging: "s", Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "n"}}}}}))
			}
			s.fromLog(LogEvent{Event: core.Elected{Term: 2}})
			elected := entry(&facts.LeaderElected{Leader: "jt"})
			elected.Event = core.Entry{Index: index, Term: 2, Data: elected.Event.(core.Entry).Data}
			s.fromLog(elected)
			snapshots := make(chan []byte, 1)
			last, request := entry(&facts.Drain{N: 1, Tracker: "t"}), LogEvent{Snapshot: func(data []byte, _ error) {
				snapshots <- data
				close(log.answered)
			}}
			if closing {
				log.last = []LogEvent{last, request}
				if err := s.closeLog(); err != nil {
					t.Fatal(err)
				}
			} else {
				s.fromLog(last)
				s.fromLog(request)
			}
			restored := core.New(core.Config{})
			restored.Step(0, core.Restored{Snapshot: <-snapshots})
			if restored.Applied() != index {
				t.Errorf("the snapshot after entry %d is of entry %d", index, restored.Applied())
			}
		})
	}
}

// closableLog has last events while it closes. Their answer ends that.
type closableLog struct {
	*MemoryLog
	last     []LogEvent
	answered chan struct{}
}

func (l *closableLog) Close() error {
	l.mu.Lock()
	l.queue = append(l.queue, l.last...)
	l.mu.Unlock()
	l.ready <- struct{}{}
	<-l.answered
	return l.MemoryLog.Close()
}
