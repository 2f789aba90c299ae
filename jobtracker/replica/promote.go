package replica

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// measured is raft's transport. It notes how much of the log each follower has confirmed: raft itself
// does not tell.
type measured struct {
	*raft.NetworkTransport
	followers *followers
}

// AppendEntries implements raft.Transport. Heartbeats confirm no entry.
func (m measured) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	sent := time.Now()
	err := m.NetworkTransport.AppendEntries(id, to, args, resp)
	if last := args.PrevLogEntry + uint64(len(args.Entries)); err == nil && resp.Success && last > 0 {
		m.followers.confirm(id, confirmed{last, sent})
	}
	return err
}

// confirmed is the last entry that a follower has, as it answered to a message sent at a time.
type confirmed struct {
	index uint64
	sent  time.Time
}

// followers has the latest answer of each follower.
type followers struct {
	mu  sync.Mutex
	all map[raft.ServerID]confirmed
}

func (f *followers) confirm(id raft.ServerID, c confirmed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = make(map[raft.ServerID]confirmed)
	}
	f.all[id] = c
}

func (f *followers) of(id raft.ServerID) confirmed {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[id]
}

// round is the time in which a nonvoter must confirm the entries that the leader has at its begin.
// If it does, it follows as fast as the log grows.
type round struct {
	begun  time.Time
	target uint64 // the leader's last entry
}

// rounds are the running rounds, by nonvoter.
type rounds map[raft.ServerID]round

// next reports whether a nonvoter has ended its round in time. If the time is over, another round
// begins, up to the entry last.
func (x rounds) next(id raft.ServerID, c confirmed, last uint64, now time.Time, limit time.Duration) bool {
	current, ok := x[id]
	switch {
	case ok && c.index >= current.target && !c.sent.Before(current.begun):
		delete(x, id)
		return true
	case !ok || now.Sub(current.begun) > limit:
		x[id] = round{now, last}
	}
	return false
}

// roundTimeouts is the limit of a round in units of Config.Timeout. A leader without proposals sends
// entries to a follower after one or two.
const roundTimeouts = 4

// checkNonvoters makes nonvoters that have caught up voters, if this replica leads.
func (r *Replica) checkNonvoters(rounds rounds) {
	inst := r.instance()
	if inst == nil || inst.raft.State() != raft.Leader {
		clear(rounds)
		return
	}
	for _, s := range inst.raft.GetConfiguration().Configuration().Servers {
		if s.Suffrage != raft.Nonvoter {
			delete(rounds, s.ID)
			continue
		}
		if rounds.next(s.ID, inst.progress.of(s.ID), inst.raft.LastIndex(), time.Now(), roundTimeouts*r.cfg.Timeout) {
			r.loops.Go(func() { r.promote(s) })
		}
	}
}

// promote makes a nonvoter a voter, unless it has been removed or has another address now. If it
// fails, the next round tries again.
func (r *Replica) promote(s raft.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*r.cfg.Timeout)
	defer cancel()
	err := r.change(ctx, func(inst *instance, timeout time.Duration) error {
		if !slices.Contains(inst.raft.GetConfiguration().Configuration().Servers, s) {
			return errors.New("it is not among the nonvoters any more")
		}
		return inst.raft.AddVoter(s.ID, s.Address, 0, timeout).Error()
	})
	if err != nil {
		r.cfg.Logger.Info("a job tracker is not a voter yet", "id", string(s.ID), "error", err)
		return
	}
	r.cfg.Logger.Info("a job tracker has caught up and votes now", "id", string(s.ID), "addr", string(s.Address))
}
