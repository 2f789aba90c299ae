package replica

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// server is a job tracker with a replica.
type server struct {
	*jobtracker.Server
	replica *Replica
	cfg     Config
	cancel  context.CancelFunc
	ran     chan error
}

func serve(t *testing.T, cfg Config, files dfs.FS) *server {
	t.Helper()
	defaults(&cfg.Listen, loopback())
	defaults(&cfg.Timeout, testTimeout)
	defaults(&cfg.segmentSize, 1<<20)
	defaults(&cfg.checkEvery, 2) // real job trackers must have equal facts
	if os.Getenv("QUERN_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("node", cfg.ID)
	}
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Listen = r.Addr()
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{
		Server: jobtracker.New(jobtracker.Config{
			ID: cfg.ID, Log: r, FS: files, Staging: "mem://s/staging", Logger: cfg.Logger,
		}),
		replica: r, cfg: cfg, cancel: cancel, ran: make(chan error, 1),
	}
	go func() { s.ran <- s.Run(ctx) }()
	t.Cleanup(func() { s.end(t) })
	return s
}

// end stops a job tracker as the command jobtracker does.
func (s *server) end(t *testing.T) {
	t.Helper()
	s.cancel()
	select {
	case err, open := <-s.ran:
		if open {
			close(s.ran)
		}
		if err != nil { // also if facts differ
			t.Errorf("%s: %v", s.cfg.ID, err)
		}
	case <-time.After(patience):
		t.Errorf("%s does not end", s.cfg.ID)
	}
}

// submit tries the servers until the leader answers.
func submit(t *testing.T, servers []*server, key string) wire.JobID {
	t.Helper()
	sub := wire.Submission{
		Key: key, Staging: "mem://s/staging/" + key,
		Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "count", Reduces: 1}}},
	}
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(5 * time.Millisecond); time.Now().Before(deadline); <-tick.C {
		for _, s := range servers {
			ctx, cancel := context.WithTimeout(t.Context(), 20*testTimeout)
			ids, err := s.Submit(ctx, core.Caller{}, sub)
			cancel()
			if err == nil {
				return ids[0]
			}
			if !errors.Is(err, core.ErrNotLeader) && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
	}
	t.Fatalf("no server accepted %s", key)
	return wire.JobID{}
}

// TestServers: the next leader knows an acknowledged submission by the same id, also after all job
// trackers were restarted.
func TestServers(t *testing.T) {
	t.Parallel()
	files, dir := mem.New(1<<20), t.TempDir()
	var servers []*server
	var voters []Voter
	for _, id := range []string{"jt1", "jt2", "jt3"} {
		s := serve(t, Config{ID: id, Dir: dir + "/" + id}, files)
		servers = append(servers, s)
		voters = append(voters, Voter{ID: id, Addr: s.replica.Addr()})
	}
	if err := servers[0].replica.Bootstrap(voters); err != nil {
		t.Fatal(err)
	}
	first := submit(t, servers, "first")
	if again := submit(t, servers, "first"); again != first {
		t.Errorf("the same key got %v, then %v", first, again)
	}
	for i, s := range servers {
		if id, _ := s.replica.Leader(); id == s.cfg.ID {
			s.end(t)
			servers = append(servers[:i:i], servers[i+1:]...)
			break
		}
	}
	if again := submit(t, servers, "first"); again != first {
		t.Errorf("the next leader knows %v as %v", first, again)
	}
	second := submit(t, servers, "second")
	for _, s := range servers {
		s.end(t)
		if list, err := listSnapshots(s.cfg.Dir); err != nil || len(list) == 0 {
			t.Errorf("%s stopped cleanly and left %d snapshots, %v", s.cfg.ID, len(list), err)
		}
	}
	for i, s := range servers {
		servers[i] = serve(t, s.cfg, files)
	}
	if again := submit(t, servers, "second"); again != second {
		t.Errorf("after a restart %v is known as %v", second, again)
	}
}

// TestRecover: after the loss of the majority, one job tracker continues alone with its whole log.
func TestRecover(t *testing.T) {
	t.Parallel()
	files, dir := mem.New(1<<20), t.TempDir()
	var servers []*server
	var voters []Voter
	for _, id := range []string{"jt1", "jt2", "jt3"} {
		s := serve(t, Config{ID: id, Dir: dir + "/" + id}, files)
		servers = append(servers, s)
		voters = append(voters, Voter{ID: id, Addr: s.replica.Addr()})
	}
	if err := servers[0].replica.Bootstrap(voters); err != nil {
		t.Fatal(err)
	}
	first := submit(t, servers, "first")
	one, fsm := servers[1].cfg, servers[1].replica.fsm
	waitFor(t, "jt2 to have it", func() bool {
		return fsm.applied.Load() == leading(t, servers).replica.fsm.applied.Load()
	})
	if err := Recover(one.Dir, one.ID, one.Listen); !errors.Is(err, ErrInUse) {
		t.Errorf("recovered while it runs: %v", err)
	}
	for _, s := range servers {
		s.end(t)
	}
	if err := Recover(one.Dir, "jt9", one.Listen); err == nil || !strings.Contains(err.Error(), "jt1, jt2, jt3, but not jt9") {
		t.Errorf("recovered as another: %v", err)
	}
	if err := Recover(one.Dir, one.ID, one.Listen); err != nil {
		t.Fatal(err)
	}
	alone := serve(t, one, files)
	if again := submit(t, []*server{alone}, "first"); again != first {
		t.Errorf("%v is known as %v afterwards", first, again)
	}
	if voters := alone.replica.Voters(); len(voters) != 1 || voters[0] != (Voter{one.ID, one.Listen}) {
		t.Errorf("the voters are %v", voters)
	}
	for _, empty := range []string{t.TempDir(), dir + "/missing"} {
		if err := Recover(empty, "jt1", "127.0.0.1:1"); !errors.Is(err, ErrNoState) {
			t.Errorf("recovered nothing: %v", err)
		}
	}
}

// TestAmbiguous cuts off leaders while clients submit. A client repeats an undecided submission,
// and gets one job, with the same id from all leaders. Row 7 of docs/promises.md.
func TestAmbiguous(t *testing.T) {
	t.Parallel()
	files, dir, net := mem.New(1<<20), t.TempDir(), newLinks()
	var servers []*server
	var voters []Voter
	for _, id := range []string{"jt1", "jt2", "jt3"} {
		cfg := Config{ID: id, Dir: dir + "/" + id}
		net.join(&cfg)
		s := serve(t, cfg, files)
		servers = append(servers, s)
		voters = append(voters, Voter{ID: id, Addr: s.replica.Addr()})
		net.mu.Lock()
		net.addrs[s.replica.Addr()] = id
		net.mu.Unlock()
	}
	if err := servers[0].replica.Bootstrap(voters); err != nil {
		t.Fatal(err)
	}
	submit(t, servers, "first") // now a majority knows the voters
	ids := make([]wire.JobID, 24)
	var clients sync.WaitGroup
	for c := range 3 {
		clients.Go(func() {
			for i := c; i < len(ids); i += 3 {
				ids[i] = submit(t, servers, fmt.Sprint("key ", i))
			}
		})
	}
	for range 3 {
		leader := leading(t, servers)
		net.isolate(leader.cfg.ID, true)
		submit(t, servers, "while cut off")
		net.isolate(leader.cfg.ID, false)
	}
	clients.Wait()
	seen := make(map[wire.JobID]int)
	for i, id := range ids {
		if other, ok := seen[id]; ok {
			t.Errorf("key %d and key %d are both %v", i, other, id)
		}
		seen[id] = i
		if again := submit(t, servers, fmt.Sprint("key ", i)); again != id {
			t.Errorf("key %d is %v, and was acknowledged as %v", i, again, id)
		}
	}
}

// leading returns the leader that a majority has confirmed.
func leading(t *testing.T, servers []*server) *server {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		for _, s := range servers {
			if s.replica.instance().raft.VerifyLeader().Error() == nil {
				return s
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("no leader")
		}
	}
}
