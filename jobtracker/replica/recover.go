package replica

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/quernmr/quern/jobtracker/core"
)

// Recover makes the job tracker with the state in dir the only voter, after a cluster has lost its
// majority for good. All entries of its log count as committed from then on. No other job tracker
// of the old cluster may start with its old state.
func Recover(dir, id, addr string) error {
	cfg := Config{ID: id, Dir: dir, Listen: addr}
	if err := cfg.complete(); err != nil {
		return err
	}
	cfg.readLimit = math.MaxInt // Recover replaces the entries by a snapshot, which may have any size
	if err := recoverState(&cfg); err != nil {
		return fmt.Errorf("recover the job tracker in %s: %w", dir, err)
	}
	return nil
}

func recoverState(cfg *Config) error {
	if _, err := os.Stat(cfg.Dir); err != nil {
		return fmt.Errorf("%w: %w", ErrNoState, err)
	}
	lock, err := lockDirectory(cfg.Dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if has, err := holdsState(cfg.Dir); err != nil {
		return err
	} else if !has {
		return ErrNoState
	}
	store, snaps, err := openState(cfg)
	if err != nil {
		return err
	}
	defer store.close()
	if has, err := raft.HasExistingState(store, store, snaps); err != nil {
		return err
	} else if !has {
		return ErrNoState
	}
	_, trans := raft.NewInmemTransport(raft.ServerAddress(cfg.Listen))
	defer trans.Close()
	raftCfg := raft.DefaultConfig()
	raftCfg.LocalID = raft.ServerID(cfg.ID)
	raftCfg.Logger = newLogger(slog.New(slog.DiscardHandler))
	old, err := raft.GetConfiguration(raftCfg, &coreFSM{core: core.New(core.Config{})}, store, store, snaps, trans)
	if err != nil {
		return err
	}
	if err := checkVoter(old, cfg.ID); err != nil {
		return err
	}
	voters := raft.Configuration{Servers: []raft.Server{
		{ID: raft.ServerID(cfg.ID), Address: raft.ServerAddress(cfg.Listen)},
	}}
	return raft.RecoverCluster(raftCfg, &coreFSM{core: core.New(core.Config{})}, store, store, snaps, trans, voters)
}

// checkVoter fails if id is not among the servers of the log: raft could never elect it.
func checkVoter(old raft.Configuration, id string) error {
	var ids []string
	for _, s := range old.Servers {
		if s.ID == raft.ServerID(id) {
			return nil
		}
		ids = append(ids, string(s.ID))
	}
	return fmt.Errorf("its log has the job trackers %s, but not %s", strings.Join(ids, ", "), id)
}

// coreFSM applies entries to its own core, without a job tracker.
type coreFSM struct {
	core  *core.Core
	index uint64
	err   error
}

// Apply implements raft.FSM. Raft ignores the answer; Snapshot returns the error.
func (f *coreFSM) Apply(l *raft.Log) any {
	f.step(core.Entry{Index: l.Index, Term: l.Term, Data: l.Data})
	f.index = l.Index
	return nil
}

func (f *coreFSM) step(ev core.Event) {
	for _, c := range f.core.Step(0, ev) {
		if halt, ok := c.(core.Halt); ok && f.err == nil {
			f.err = halt.Err
		}
	}
}

// Restore implements raft.FSM.
func (f *coreFSM) Restore(from io.ReadCloser) error {
	data, err := io.ReadAll(from)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	index, facts, err := decodeSnapshot(data)
	if err != nil {
		return err
	}
	f.step(core.Restored{Snapshot: facts})
	f.index = index
	return f.err
}

// Snapshot implements raft.FSM.
func (f *coreFSM) Snapshot() (raft.FSMSnapshot, error) {
	if f.err != nil {
		return nil, f.err
	}
	data, err := f.core.Snapshot()
	if err != nil {
		return nil, err
	}
	return &savedFacts{append(encodeSnapshotHeader(f.index), data...)}, nil
}

type savedFacts struct{ data []byte }

// Persist implements raft.FSMSnapshot.
func (s *savedFacts) Persist(to raft.SnapshotSink) error {
	_, err := to.Write(s.data)
	return err
}

// Release implements raft.FSMSnapshot.
func (s *savedFacts) Release() {}
