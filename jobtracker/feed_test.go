package jobtracker

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// TestFollow: followers hear of new and changed jobs, each at its own pace. Without followers no status is made.
func TestFollow(t *testing.T) {
	s := start(t, nil)
	first, endFirst := context.WithCancel(testContext(t))
	changes := s.Follow(first)
	slow := s.Follow(testContext(t)) // reads only in the end
	go attach(t, s, "t1", 1, 5).run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 3))
	if err != nil {
		t.Fatal(err)
	}
	follow := func(changes iter.Seq2[[]core.Listed, error], id wire.JobID) {
		t.Helper()
		for list, err := range changes {
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				if list[i].Counters != nil || list[i].Submitted == 0 {
					t.Errorf("a follower hears %+v", list[i])
				}
				if list[i].ID == id && list[i].State == wire.Succeeded {
					return
				}
			}
		}
		t.Error("the followers do not hear of the job's end")
	}
	follow(changes, ids[0])
	follow(slow, ids[0])
	endFirst()
	for _, err := range s.Follow(first) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after its end, a follower hears %v", err)
		}
	}
}

// TestFeed: the first follower starts the reader of statuses, the last one ends it. The reader of one time adds
// nothing later.
func TestFeed(t *testing.T) {
	var f feed
	var fills []context.Context
	started := make(chan context.Context)
	fill := func(ctx context.Context, _ <-chan struct{}) { started <- ctx }
	note := func(n int) { f.note([]wire.JobID{jobN(n)}) }
	note(1) // without followers
	a, b := f.join(fill), f.join(fill)
	fills = append(fills, <-started)
	if a != b {
		t.Error("followers who join together hear different news")
	}
	note(3)
	note(2)
	note(3)
	if ids := fmt.Sprint(f.take(fills[0])); ids != fmt.Sprint([]wire.JobID{jobN(2), jobN(3)}) {
		t.Errorf("changed: %v", ids)
	}
	f.add(fills[0], []core.Listed{{Submitted: 7}}, nil)
	<-a.ready
	if c := f.join(fill); c != a.next || a.jobs[0].Submitted != 7 {
		t.Error("a later follower hears earlier news")
	}
	for range 3 {
		f.leave()
	}
	if fills[0].Err() == nil || f.changed != nil {
		t.Error("without followers, statuses are read")
	}
	d := f.join(fill)
	fills = append(fills, <-started)
	note(4)
	f.add(fills[0], nil, errors.New("late"))
	if ids := f.take(fills[0]); len(ids) > 0 {
		t.Errorf("an old reader takes %v", ids)
	}
	select {
	case <-d.ready:
		t.Errorf("an old reader adds %v", d.err)
	default:
	}
	if ids := f.take(fills[1]); len(ids) != 1 {
		t.Errorf("the new reader takes %v", ids)
	}
	f.leave()
}

// TestDeposedFeed: followers hear that the job tracker does not lead any more.
func TestDeposedFeed(t *testing.T) {
	log := newScriptedLog()
	s := start(t, func(c *Config) { c.Log = log })
	log.play(core.Elected{Term: 1})
	log.play(proposedEntries(core.Config{ID: "jobtracker", Staging: staging})...)
	changes := s.Follow(testContext(t))
	log.mu.Lock()
	log.term = 2
	log.mu.Unlock()
	s.feed.note([]wire.JobID{jobN(1)})
	for _, err := range changes {
		if !errors.Is(err, core.ErrNotLeader) {
			t.Errorf("followers hear %v", err)
		}
		return
	}
}
