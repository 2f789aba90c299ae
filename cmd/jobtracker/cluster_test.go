package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// deadline limits every wait for an event.
const deadline = 3 * time.Minute

// output collects output. It closes more at each write.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newOutput() *output { return &output{more: make(chan struct{})} }

func (s *output) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(b)
	close(s.more)
	s.more = make(chan struct{})
	return len(b), nil
}

func (s *output) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits for a text.
func (s *output) await(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(deadline)
	for {
		s.mu.Lock()
		more, ok := s.more, strings.Contains(s.text.String(), text)
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("no output %q in\n%s", text, s)
		}
	}
}

// testJobTracker is a job tracker in this process.
type testJobTracker struct {
	id, data           string
	http, raft, gossip string
	log                *output
	cancel             context.CancelFunc
	ended              chan struct{}
	err                error // of run; set before ended is closed
}

// launch starts a job tracker on free ports and waits until it is ready or has ended.
func launch(t *testing.T, id, data string, flags ...string) *testJobTracker {
	t.Helper()
	r := &testJobTracker{id: id, data: data, log: newOutput(), ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	out := newOutput()
	args := append([]string{
		"-id", id, "-data", data, "-listen", "127.0.0.1:0", "-raft", "127.0.0.1:0", "-gossip", "127.0.0.1:0", "-raft-timeout", "2s", "-v",
	}, flags...)
	go func() {
		defer close(r.ended)
		r.err = run(ctx, args, daemon.Output{Stdout: out, Stderr: r.log})
		fmt.Fprintln(out, "ended")
	}()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("%s:\n%s", id, r.log)
		}
	})
	out.await(t, "\n")
	line := out.String()
	if strings.HasPrefix(line, "ready") {
		var name string
		text := strings.NewReplacer("http=", "", "raft=", "", "gossip=", "").Replace(line)
		if _, err := fmt.Sscanf(text, "ready jobtracker %s %s %s %s\n", &name, &r.http, &r.raft, &r.gossip); err != nil || name != id {
			t.Fatalf("it printed %q: %v", line, err)
		}
	}
	return r
}

func (r *testJobTracker) stop() error {
	r.cancel()
	<-r.ended
	return r.err
}

// wantRefused waits until the job tracker ends, and checks its error.
func (r *testJobTracker) wantRefused(t *testing.T, want ...string) {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(deadline):
		t.Fatalf("%s was not refused", r.id)
	}
	if r.err == nil {
		t.Fatalf("%s ended without an error", r.id)
	}
	for _, text := range want {
		if !strings.Contains(r.err.Error(), text) {
			t.Errorf("%s was refused without %q: %v", r.id, text, r.err)
		}
	}
	if errors.Is(r.err, daemon.ErrUsage) {
		t.Errorf("%s was refused as bad usage: %v", r.id, r.err)
	}
}

// userConfig returns the TLS settings of this user's clients.
func userConfig(t *testing.T) *tls.Config {
	t.Helper()
	user, err := userstate.Identity(os.Getenv, identity.Peer{Role: identity.Client, Name: userstate.User()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return user.Dialer(identity.JobTracker)
}

// awaitStatus requests the cluster's status until condition is true for it.
func (r *testJobTracker) awaitStatus(t *testing.T, what string, condition func(web.Cluster) bool) web.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: userConfig(t)}}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var c web.Cluster
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.http+"/v1/cluster", nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := client.Do(request); err == nil {
			err = json.NewDecoder(answer.Body).Decode(&c)
			answer.Body.Close()
			if err == nil && condition(c) {
				return c
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: never %s, but %+v", r.id, what, c)
		case <-r.ended:
			t.Fatalf("%s has ended: %v", r.id, r.err)
		case <-tick.C:
		}
	}
}

// awaitVoters waits until there is a leader and the voters have these ids.
func (r *testJobTracker) awaitVoters(t *testing.T, ids ...string) web.Cluster {
	t.Helper()
	return r.awaitStatus(t, "led, voters "+strings.Join(ids, " "), func(c web.Cluster) bool {
		var got []string
		for _, v := range c.Voters {
			if !v.Nonvoter {
				got = append(got, v.ID)
			}
		}
		return c.Leader != "" && c.ID != "" && slices.Equal(got, ids)
	})
}

// awaitClusterID waits until the job tracker has stored the id of its cluster.
func (r *testJobTracker) awaitClusterID(t *testing.T) { r.log.await(t, "belongs to a cluster") }

// testDir has the directories of a test's job trackers.
type testDir struct{ dir string }

func (p testDir) data(id string) string { return filepath.Join(p.dir, id) }

func (p testDir) staging() []string {
	return []string{"-staging", "file://" + filepath.Join(p.dir, "staging")}
}

// unusedAddr is a gossip address at which no process listens.
const unusedAddr = "127.0.0.1:1"

func (p testDir) startThree(t *testing.T) []*testJobTracker {
	t.Helper()
	all := []*testJobTracker{launch(t, "jt1", p.data("jt1"), append(p.staging(), "-bootstrap-expect", "3", "-join", unusedAddr)...)}
	for _, id := range []string{"jt2", "jt3"} {
		all = append(all, launch(t, id, p.data(id), append(p.staging(), "-bootstrap-expect", "3", "-join", all[0].gossip)...))
	}
	for _, r := range all {
		r.awaitVoters(t, "jt1", "jt2", "jt3")
		r.awaitClusterID(t)
	}
	return all
}

func TestAlone(t *testing.T) {
	t.Parallel()
	p := testDir{t.TempDir()}
	r := launch(t, "jt1", p.data("jt1"))
	first := r.awaitStatus(t, "leads", func(c web.Cluster) bool { return c.IsLeader })
	if want := "file://" + p.data("jt1") + "/staging"; first.Staging != want || !first.IsLeader {
		t.Errorf("staging %s of a leader (%v), not %s", first.Staging, first.IsLeader, want)
	}
	launch(t, "jt1", p.data("jt1")).wantRefused(t, p.data("jt1"), "in use")
	r.awaitClusterID(t)
	if err := r.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	r = launch(t, "jt1", p.data("jt1"))
	again := r.awaitStatus(t, "leads again", func(c web.Cluster) bool { return c.IsLeader && c.Epoch > first.Epoch })
	if again.ID != first.ID {
		t.Errorf("after a restart: %+v\nbefore: %+v", again, first)
	}
	r.stop()
	launch(t, "jt1", p.data("jt1"), "-staging", "file:///elsewhere").wantRefused(t, "staging")
	if err := os.RemoveAll(daemon.LogDir(p.data("jt1"))); err != nil {
		t.Fatal(err)
	}
	launch(t, "jt1", p.data("jt1")).wantRefused(t, p.data("jt1"), "log is gone")
}

// TestThree: three job trackers create a cluster, restart on other ports, and add a fourth. A
// removed job tracker, and one that has lost its state, are refused.
func TestThree(t *testing.T) {
	t.Parallel()
	p := testDir{t.TempDir()}
	all := p.startThree(t)
	cluster := all[0].awaitVoters(t, "jt1", "jt2", "jt3").ID
	for _, r := range all {
		if err := r.stop(); err != nil {
			t.Errorf("%s: %v", r.id, err)
		}
		if hasFile(r.data, candidateFile) {
			t.Errorf("%s did not remove the file %s", r.id, candidateFile)
		}
	}
	join := unusedAddr
	for i, r := range all {
		all[i] = launch(t, r.id, r.data, append(p.staging(), "-bootstrap-expect", "3", "-join", join)...)
		join = all[0].gossip
	}
	for _, r := range all {
		if got := r.awaitVoters(t, "jt1", "jt2", "jt3").ID; got != cluster {
			t.Errorf("%s is of cluster %s, not %s", r.id, got, cluster)
		}
	}

	fourth := launch(t, "jt4", p.data("jt4"), append(p.staging(), "-join", all[2].gossip)...)
	fourth.awaitVoters(t, "jt1", "jt2", "jt3", "jt4")
	fourth.awaitClusterID(t)
	all[0].awaitVoters(t, "jt1", "jt2", "jt3", "jt4")

	remover := web.NewClient([]string{all[0].http})
	remover.Secure(userConfig(t))
	defer remover.Close()
	fourth.stop()
	if err := remover.RemoveVoter(t.Context(), "jt4"); err != nil {
		t.Fatal(err)
	}
	if err := remover.RemoveVoter(t.Context(), "jt4"); !errors.Is(err, web.ErrNotVoter) {
		t.Errorf("removing jt4 twice: %v", err)
	}
	all[0].awaitVoters(t, "jt1", "jt2", "jt3")
	launch(t, "jt4", fourth.data, append(p.staging(), "-join", all[2].gossip)...).wantRefused(t, "job tracker jt4 is no longer in cluster", fourth.data)

	all[1].stop()
	if err := os.RemoveAll(all[1].data); err != nil {
		t.Fatal(err)
	}
	// Start jt2 at its old port, which the leader still dials.
	launch(t, "jt2", all[1].data, append(p.staging(), "-raft", all[1].raft, "-bootstrap-expect", "3", "-join", all[0].gossip)...).
		wantRefused(t, "jt2", all[1].data, "mrsubmit cluster remove jt2")
}

// TestRemovedStartsFirst: a job tracker that was removed starts while no other one runs. It ends when it finds the leader.
func TestRemovedStartsFirst(t *testing.T) {
	t.Parallel()
	p := testDir{t.TempDir()}
	all := p.startThree(t)
	all[0].awaitVoters(t, "jt1", "jt2", "jt3")
	removed := all[2]
	removed.awaitClusterID(t)
	removed.stop()
	client := web.NewClient([]string{all[0].http, all[1].http})
	client.Secure(userConfig(t))
	defer client.Close()
	if err := client.RemoveVoter(t.Context(), "jt3"); err != nil {
		t.Fatal(err)
	}
	for _, r := range all[:2] {
		r.awaitVoters(t, "jt1", "jt2")
		r.stop()
	}
	removed = launch(t, "jt3", removed.data, append(p.staging(), "-join", unusedAddr)...)
	removed.log.await(t, "entering candidate state")
	for _, r := range all[:2] {
		launch(t, r.id, r.data, append(p.staging(), "-join", removed.gossip)...)
	}
	removed.wantRefused(t, "job tracker jt3 is no longer in cluster", removed.data)
}

func TestAnotherClustersDirectory(t *testing.T) {
	t.Parallel()
	one, other := testDir{t.TempDir()}, testDir{t.TempDir()}
	a := launch(t, "jt1", one.data("jt1"), one.staging()...)
	b := launch(t, "jt2", other.data("jt2"), other.staging()...)
	a.awaitClusterID(t)
	b.awaitClusterID(t)
	b.stop()
	launch(t, "jt2", b.data, append(other.staging(), "-join", a.gossip)...).
		wantRefused(t, b.data, a.awaitVoters(t, "jt1").ID, "jt1")
}

func TestDisagreeingJobTrackers(t *testing.T) {
	t.Parallel()
	p := testDir{t.TempDir()}
	a := launch(t, "jt1", p.data("jt1"), append(p.staging(), "-bootstrap-expect", "3", "-join", unusedAddr)...)
	b := launch(t, "jt2", p.data("jt2"), append(p.staging(), "-bootstrap-expect", "5", "-join", a.gossip)...)
	b.wantRefused(t, "jt1", "-bootstrap-expect 3", "5")
}

func TestNewcomerWaitsForCluster(t *testing.T) {
	t.Parallel()
	p := testDir{t.TempDir()}
	a := launch(t, "jt2", p.data("jt2"), append(p.staging(), "-join", unusedAddr)...)
	a.log.await(t, "waits for a cluster to join")
	// At its end it removes its nonce, which would look like another cluster.
	nonces := filepath.Join(p.dir, "staging", wire.StagingClusters)
	if files, err := os.ReadDir(nonces); err != nil || len(files) != 1 {
		t.Errorf("nonces while it waits: %v, %v", files, err)
	}
	a.stop()
	if files, err := os.ReadDir(nonces); err != nil || len(files) != 0 {
		t.Errorf("nonces after it has stopped: %v, %v", files, err)
	}
	a = launch(t, "jt2", a.data, append(p.staging(), "-join", unusedAddr)...)
	b := launch(t, "jt1", p.data("jt1"), append(p.staging(), "-bootstrap-expect", "1", "-join", a.gossip)...)
	b.awaitVoters(t, "jt1", "jt2")
	a.awaitVoters(t, "jt1", "jt2")
}

// TestNewcomerWithBadPools: a job tracker joins a cluster although its pools file is broken. The log has the
// cluster's pools.
func TestNewcomerWithBadPools(t *testing.T) {
	t.Parallel()
	p := testDir{t.TempDir()}
	a := launch(t, "jt1", p.data("jt1"), append(p.staging(), "-bootstrap-expect", "1", "-join", unusedAddr)...)
	a.awaitClusterID(t)
	pools := filepath.Join(p.dir, "pools.xml")
	if err := os.WriteFile(pools, []byte("<allocations>"), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, "jt2", p.data("jt2"), append(p.staging(), "-join", a.gossip, "-pools", pools)...)
	a.awaitVoters(t, "jt1", "jt2")
}

// TestHarmfulNewcomer: a new job tracker with another staging directory, or with the address of a
// stopped job tracker, is refused before it is a voter.
func TestHarmfulNewcomer(t *testing.T) {
	t.Parallel()
	p := testDir{t.TempDir()}
	all := p.startThree(t)
	launch(t, "jt4", p.data("jt4"), "-staging", "file:///elsewhere", "-join", all[0].gossip).
		wantRefused(t, "staging directory differs", "file:///elsewhere")
	all[2].stop()
	launch(t, "jt5", p.data("jt5"), append(p.staging(), "-raft", all[2].raft, "-join", all[0].gossip)...).
		wantRefused(t, "jt3", all[2].raft, "mrsubmit cluster remove jt3")
	all[0].awaitVoters(t, "jt1", "jt2", "jt3")
	if hasFile(p.data("jt4"), candidateFile) {
		t.Error("jt4 has requested to join")
	}
	launch(t, "jt4", p.data("jt4"), append(p.staging(), "-join", all[0].gossip)...)
	all[0].awaitVoters(t, "jt1", "jt2", "jt3", "jt4")
}
