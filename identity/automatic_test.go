package identity

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func automatic(t *testing.T, dir string, p Peer) *Identity {
	t.Helper()
	a, err := OpenAuthority(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Identity(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestSimultaneousAuthorities: processes that start at once use the same authority.
func TestSimultaneousAuthorities(t *testing.T) {
	for range 20 {
		dir := filepath.Join(t.TempDir(), "new", "authority")
		all := make([]*Authority, 8)
		var wait sync.WaitGroup
		for i := range all {
			wait.Go(func() {
				a, err := OpenAuthority(dir, time.Now())
				if err != nil {
					t.Error(err)
					return
				}
				all[i] = a
			})
		}
		wait.Wait()
		if t.Failed() {
			return
		}
		for _, a := range all {
			if !a.cert.Equal(all[0].cert) || !a.key.Equal(all[0].key) || !bytes.Equal(a.gossip, all[0].gossip) {
				t.Fatal("two processes have different authorities")
			}
		}
		if names, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(names) != 1 {
			t.Errorf("left %v, %v", names, err)
		}
	}
}

// TestIdentityInMemory: processes that can read the authority admit each other, and no other file is
// written.
func TestIdentityInMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "authority")
	server, client := automatic(t, dir, Peer{JobTracker, "jt1"}), automatic(t, dir, Peer{Client, "ann"})
	if seen, err := connect(server.Server(Client), client.Dialer(JobTracker)); err != nil || seen != (Peer{Client, "ann"}) {
		t.Errorf("%v, %v", seen, err)
	}
	if _, err := connect(server.Server(TaskTracker), client.Dialer(JobTracker)); !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("a client instead of a task tracker: %v", err)
	}
	key, err := server.GossipKey()
	if other, _ := client.GossipKey(); err != nil || !bytes.Equal(key, other) {
		t.Errorf("gossip key: %v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 3 {
		t.Errorf("the authority has %v, %v", names, err)
	}
	a, err := OpenAuthority(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Identity(Peer{Client, "an n"}, nil); !errors.Is(err, ErrNoIdentity) {
		t.Errorf("a wrong name: %v", err)
	}
}

// TestAutomaticDenyList: a deny list in the authority's directory holds for all daemons that use it.
func TestAutomaticDenyList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "authority")
	automatic(t, dir, Peer{JobTracker, "jt1"}) // makes the authority
	if err := os.WriteFile(filepath.Join(dir, DeniedFile), []byte("client bob\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, ann, bob := automatic(t, dir, Peer{JobTracker, "jt1"}), automatic(t, dir, Peer{Client, "ann"}), automatic(t, dir, Peer{Client, "bob"})
	if _, err := connect(server.Server(Client), ann.Dialer(JobTracker)); err != nil {
		t.Error(err)
	}
	if _, err := connect(server.Server(Client), bob.Dialer(JobTracker)); !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("a denied user: %v", err)
	}
}

// TestRenewal: a certificate is signed again after half of its validity, and when the clock is set
// back. Both ends admit each other at any time.
func TestRenewal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "authority")
	server, client := automatic(t, dir, Peer{JobTracker, "jt1"}), automatic(t, dir, Peer{Client, "ann"})
	var log bytes.Buffer
	server.log = slog.New(slog.NewTextHandler(&log, nil))
	start := time.Now()
	at := func(offset time.Duration) []byte {
		now := func() time.Time { return start.Add(offset) }
		server.now, client.now = now, now
		server.checked, client.checked = time.Time{}, time.Time{}
		if _, err := connect(server.Server(Client), client.Dialer(JobTracker)); err != nil {
			t.Errorf("after %v: %v", offset, err)
		}
		return server.pair.Certificate[0]
	}
	steps := []struct {
		at    time.Duration
		again bool
	}{{ownValidity / 3, false}, {ownValidity/2 + time.Minute, true}, {3 * ownValidity, true}, {3*ownValidity - Skew/2, false}, {0, true}}
	for last := at(0); len(steps) > 0; steps = steps[1:] {
		got := at(steps[0].at)
		if renewed := !bytes.Equal(last, got); renewed != steps[0].again {
			t.Errorf("after %v: renewed %v", steps[0].at, renewed)
		}
		last = got
	}
	if n := strings.Count(log.String(), "new certificate"); n != 3 {
		t.Errorf("%d renewals are logged:\n%s", n, &log)
	}
}

// TestAuthorityReplaced: if another authority replaces the old one, running processes use the new one.
func TestAuthorityReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "authority")
	server := automatic(t, dir, Peer{JobTracker, "jt1"})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	server.checked = time.Time{}
	if pair, _ := server.current(); pair == nil {
		t.Error("without the files, the old certificate does not stay")
	}
	client := automatic(t, dir, Peer{Client, "ann"})
	server.checked = time.Time{}
	if _, err := connect(server.Server(Client), client.Dialer(JobTracker)); err != nil {
		t.Error(err)
	}
}

// TestOtherAuthority: the error of a client that reaches another user's daemon names both authorities
// and the command that makes a certificate.
func TestOtherAuthority(t *testing.T) {
	ours, theirs := filepath.Join(t.TempDir(), "authority"), filepath.Join(t.TempDir(), "authority")
	server, client := automatic(t, theirs, Peer{JobTracker, "jt1"}), automatic(t, ours, Peer{Client, "bob"})
	var log bytes.Buffer
	server.log = slog.New(slog.NewTextHandler(&log, nil))
	_, err := connect(server.Server(Client), client.Dialer(JobTracker))
	if !errors.Is(err, ErrOtherAuthority) || !errors.Is(err, ErrNotAdmitted) {
		t.Fatal(err)
	}
	for _, want := range []string{server.trusted, client.trusted, ours, `"mrsubmit cluster certs -client bob"`, "-tls-dir", "unknown authority"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	if server.trusted == client.trusted {
		t.Errorf("two authorities have the name %s", server.trusted)
	}
	anyServer := client.Dialer(JobTracker)
	anyServer.VerifyConnection = nil
	if _, err := connect(server.Server(Client), anyServer); !errors.Is(err, ErrOtherAuthority) {
		t.Errorf("a client with another authority's certificate: %v", err)
	}
	if !strings.Contains(log.String(), "a peer is not admitted") || !strings.Contains(log.String(), "bob") {
		t.Errorf("the server logged %q", &log)
	}
}
