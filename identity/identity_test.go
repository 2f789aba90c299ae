package identity

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var day = 24 * time.Hour

// issue makes the directory of a peer, with the authority in the directory authority.
func issue(t *testing.T, authority string, p Peer, now, until time.Time) (dir string) {
	t.Helper()
	a, err := OpenAuthority(authority, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), p.Name)
	if err := a.Issue(dir, p, now, until); err != nil {
		t.Fatal(err)
	}
	return dir
}

func load(t *testing.T, dir string, role Role) *Identity {
	t.Helper()
	id, err := Load(dir, role, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// connect connects a dialer to a server, which sends a byte. seen is the peer that the server sees.
func connect(server, dialer *tls.Config) (seen Peer, err error) {
	clientEnd, serverEnd := net.Pipe()
	defer clientEnd.Close()
	defer serverEnd.Close()
	var wait sync.WaitGroup
	var refused error
	wait.Go(func() {
		defer serverEnd.Close()
		s := tls.Server(serverEnd, server)
		if refused = s.Handshake(); refused != nil {
			return
		}
		state := s.ConnectionState()
		seen, _ = PeerOf(&state)
		_, refused = s.Write([]byte{1})
	})
	c := tls.Client(clientEnd, dialer)
	_, err = io.ReadFull(c, make([]byte, 1))
	clientEnd.Close()
	wait.Wait()
	return seen, errors.Join(refused, err)
}

func TestAdmission(t *testing.T) {
	ours, theirs := t.TempDir(), t.TempDir()
	now := time.Now()
	server := load(t, issue(t, ours, Peer{JobTracker, "jt1"}, now, now.Add(day)), JobTracker)
	at := func(authority string, p Peer, from, until time.Time) *tls.Config {
		dir := issue(t, authority, p, from, until)
		id := newIdentity(dir, nil)
		id.now = func() time.Time { return from }
		if err := id.read(); err != nil {
			t.Fatal(err)
		}
		id.now = time.Now
		id.checked = time.Now().Add(day) // so that it does not read its files again
		return id.Dialer(JobTracker)
	}
	alice := Peer{Client, "alice"}
	noCert := at(ours, alice, now, now.Add(day))
	noCert.GetClientCertificate = nil
	old := at(ours, alice, now, now.Add(day))
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	unchecked := at(theirs, alice, now, now.Add(day))
	unchecked.VerifyConnection = nil // so that only the server can refuse
	for name, c := range map[string]struct {
		dialer *tls.Config
		want   string // part of the error; empty: it is admitted
	}{
		"a client":                              {at(ours, alice, now, now.Add(day)), ""},
		"a server's clock behind":               {at(ours, alice, now.Add(Skew/2), now.Add(day)), ""},
		"another authority":                     {at(theirs, alice, now, now.Add(day)), "unknown authority"},
		"another authority, server not checked": {unchecked, "unknown authority"},
		"expired":                               {at(ours, alice, now.Add(-Skew/2), now.Add(-time.Second)), "expired"},
		"not valid yet":                         {at(ours, alice, now.Add(2*Skew), now.Add(day)), "not yet valid"},
		"another role":                          {at(ours, Peer{TaskTracker, "tt1"}, now, now.Add(day)), "tasktracker tt1, want [client jobtracker]"},
		"no certificate":                        {noCert, "certificate"},
		"an older TLS":                          {old, "version"},
		"the server's role":                     {at(ours, Peer{JobTracker, "jt2"}, now, now.Add(day)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			seen, err := connect(server.Server(Client, JobTracker), c.dialer)
			switch {
			case c.want == "" && (err != nil || seen == Peer{}):
				t.Errorf("refused: %v, %v", seen, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	client := load(t, issue(t, ours, alice, now, now.Add(day)), Client)
	if _, err := connect(server.Server(Client), client.Dialer(TaskTracker)); err == nil || !strings.Contains(err.Error(), "jobtracker jt1, want [tasktracker]") {
		t.Errorf("a job tracker poses as a task tracker: %v", err)
	}
}

func TestRefusedFiles(t *testing.T) {
	authority, now := t.TempDir(), time.Now()
	for name, c := range map[string]struct {
		breakIt func(dir string) error
		want    string
	}{
		"nothing broken":  {func(string) error { return nil }, ""},
		"no key":          {func(dir string) error { return os.Remove(filepath.Join(dir, KeyFile)) }, "key.pem"},
		"an open key":     {func(dir string) error { return os.Chmod(filepath.Join(dir, KeyFile), 0o644) }, "chmod 600"},
		"no authority":    {func(dir string) error { return os.Remove(filepath.Join(dir, AuthorityFile)) }, "ca.pem"},
		"empty authority": {func(dir string) error { return os.WriteFile(filepath.Join(dir, AuthorityFile), nil, 0o644) }, "no certificate"},
		"half of a second authority": {func(dir string) error { // as while it is written
			name := filepath.Join(dir, AuthorityFile)
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			return os.WriteFile(name, append(text, text[:len(text)/2]...), 0o644)
		}, "certificate 2 in it is not complete"},
		"no certificate": {func(dir string) error { return os.Remove(filepath.Join(dir, CertFile)) }, "cert.pem"},
		"another's key": {func(dir string) error {
			return os.Rename(filepath.Join(issue(t, authority, Peer{TaskTracker, "tt2"}, now, now.Add(day)), KeyFile), filepath.Join(dir, KeyFile))
		}, "cert.pem is of another key than key.pem"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := issue(t, authority, Peer{TaskTracker, "tt1"}, now, now.Add(day))
			if err := c.breakIt(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Load(dir, TaskTracker, nil)
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrNoIdentity) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	dir := issue(t, authority, Peer{TaskTracker, "tt1"}, now, now.Add(day))
	if _, err := Load(dir, JobTracker, nil); err == nil || !strings.Contains(err.Error(), "of tasktracker tt1, want a jobtracker") {
		t.Errorf("another role's directory: %v", err)
	}
	id := load(t, dir, TaskTracker)
	if key, err := id.GossipKey(); err != nil || len(key) != gossipKeySize {
		t.Errorf("gossip key of %d bytes, %v", len(key), err)
	}
	gossip := filepath.Join(dir, GossipFile)
	for _, breakIt := range []func() error{
		func() error { return os.Chmod(gossip, 0o640) },
		func() error { return replaceFile(gossip, []byte("short"), 0o600) },
		func() error { return os.Remove(gossip) },
	} {
		if err := breakIt(); err != nil {
			t.Fatal(err)
		}
		if _, err := id.GossipKey(); !errors.Is(err, ErrNoIdentity) || !strings.Contains(err.Error(), "gossip.key") {
			t.Errorf("a broken gossip key: %v", err)
		}
	}
}

// TestLoadDuringReplacement: a process that starts while a certificate and its key are replaced waits for the second file.
func TestLoadDuringReplacement(t *testing.T) {
	for name, c := range map[string]struct {
		first, second string
		wait          time.Duration
	}{
		"the key first":         {KeyFile, CertFile, replaceWait / 2},
		"the certificate first": {CertFile, KeyFile, replaceWait / 2},
		"only the key":          {KeyFile, "", replaceWait},
	} {
		synctest.Test(t, func(t *testing.T) {
			authority, alice, now := t.TempDir(), Peer{Client, "alice"}, time.Now()
			dir, next := issue(t, authority, alice, now, now.Add(day)), issue(t, authority, alice, now, now.Add(day))
			replace := func(file string) {
				if err := os.Rename(filepath.Join(next, file), filepath.Join(dir, file)); err != nil {
					t.Error(err)
				}
			}
			replace(c.first)
			if c.second != "" {
				time.AfterFunc(c.wait, func() { replace(c.second) })
			}
			_, err := Load(dir, Client, nil)
			if c.second != "" && err != nil || c.second == "" && !errors.Is(err, errOtherKey) {
				t.Errorf("%s: %v", name, err)
			}
			if waited := time.Since(now); waited < c.wait || waited > c.wait+replacePause {
				t.Errorf("%s: waited %v, want %v", name, waited, c.wait)
			}
		})
	}
}

// TestCertificatesAreReadAgain: a new certificate is in use without a restart. If it is broken, the
// old one stays in use.
func TestCertificatesAreReadAgain(t *testing.T) {
	authority, now := t.TempDir(), time.Now()
	a, err := OpenAuthority(authority, now)
	if err != nil {
		t.Fatal(err)
	}
	p := Peer{TaskTracker, "tt1"}
	dir := issue(t, authority, p, now, now.Add(day))
	id := load(t, dir, TaskTracker)
	var logged bytes.Buffer
	id.log = slog.New(slog.NewTextHandler(&logged, nil))
	clock := now
	id.now = func() time.Time { return clock }
	serial := func() string {
		clock = clock.Add(checkPeriod)
		pair, _ := id.current()
		return fmt.Sprint(pair.Leaf.SerialNumber)
	}
	first := serial()
	if err := a.Issue(dir, p, now, now.Add(2*day)); err != nil {
		t.Fatal(err)
	}
	second := serial()
	if second == first {
		t.Error("the new certificate is not in use")
	}
	for _, broken := range []func() error{
		func() error { return a.Issue(dir, Peer{TaskTracker, "tt2"}, now, now.Add(day)) },
		func() error { return os.WriteFile(filepath.Join(dir, CertFile), []byte("none"), 0o644) },
		func() error { return os.Remove(filepath.Join(dir, CertFile)) },
	} {
		if err := broken(); err != nil {
			t.Fatal(err)
		}
		logged.Reset()
		for range 2 {
			if serial() != second {
				t.Error("a broken certificate is in use")
			}
		}
		if n := strings.Count(logged.String(), "cannot be used"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &logged)
		}
	}
	if err := a.Issue(dir, p, now, now.Add(3*day)); err != nil {
		t.Fatal(err)
	}
	if third := serial(); third == second {
		t.Error("the repaired certificate is not in use")
	}
}

// BenchmarkHandshake has both ends in one process. X25519 is a key exchange without the part that
// resists quantum computers.
func BenchmarkHandshake(b *testing.B) {
	authority, now := b.TempDir(), time.Now()
	a, err := OpenAuthority(authority, now)
	if err != nil {
		b.Fatal(err)
	}
	id := func(p Peer) *Identity {
		dir := filepath.Join(authority, p.Name)
		if err := a.Issue(dir, p, now, now.Add(day)); err != nil {
			b.Fatal(err)
		}
		id, err := Load(dir, p.Role, nil)
		if err != nil {
			b.Fatal(err)
		}
		return id
	}
	server, client := id(Peer{JobTracker, "jt1"}), id(Peer{Client, "alice"})
	for name, curves := range map[string][]tls.CurveID{"default": nil, "X25519": {tls.X25519}} {
		b.Run(name, func(b *testing.B) {
			config := client.Dialer(JobTracker)
			config.CurvePreferences = curves
			for b.Loop() {
				if _, err := connect(server.Server(Client), config); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestAuthorityStays: an authority that is opened again has the same certificate.
func TestAuthorityStays(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	one := load(t, issue(t, dir, Peer{JobTracker, "a"}, now, now.Add(day)), JobTracker)
	two := load(t, issue(t, dir, Peer{Client, "b"}, now, time.Time{}), Client)
	if _, err := connect(one.Server(Client), two.Dialer(JobTracker)); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Join(dir, AuthorityKeyFile), 0o604); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(dir, now); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a readable key of the authority: %v", err)
	}
	if info, err := os.Stat(two.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a client's directory: %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(two.dir, GossipFile)); err == nil {
		t.Error("a client has the gossip key")
	}
}

// TestIncompleteAuthority: an authority is made whole or not at all, and files in its directory stay.
// If it could not be made, the next call makes it. No temporary file stays.
func TestIncompleteAuthority(t *testing.T) {
	for _, name := range []string{GossipFile, AuthorityKeyFile, AuthorityFile} {
		parent, now := t.TempDir(), time.Now()
		dir := filepath.Join(parent, "authority")
		blocked := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		a := &Authority{dir: dir}
		if err := a.make(now); err == nil {
			t.Fatalf("%s is a directory, but the authority was made", name)
		}
		if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
			t.Errorf("%s is a directory, but beside it there are %v, %v", name, names, err)
		}
		if names, err := os.ReadDir(parent); err != nil || len(names) != 1 {
			t.Errorf("%s is a directory: left %v, %v", name, names, err)
		}
		if err := os.RemoveAll(blocked); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenAuthority(dir, now); err != nil {
			t.Errorf("%s could not be written: %v", name, err)
		}
	}
}

// TestReplaceFile: if a file cannot be replaced, no other file stays.
func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, KeyFile, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(filepath.Join(dir, KeyFile), []byte("key"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left %v, %v", names, err)
	}
}

// TestValidity: a certificate is valid no longer than its authority.
func TestValidity(t *testing.T) {
	authority, now := t.TempDir(), time.Now()
	if _, err := OpenAuthority(authority, now); err != nil {
		t.Fatal(err)
	}
	end := now.AddDate(authorityYears, 0, 0).Truncate(time.Second)
	for until, want := range map[time.Time]time.Time{
		now.Add(day): now.Add(day).Truncate(time.Second), {}: end, end.Add(day): end,
	} {
		id := load(t, issue(t, authority, Peer{TaskTracker, "tt1"}, now, until), TaskTracker)
		if got := id.pair.Leaf.NotAfter; !got.Equal(want) {
			t.Errorf("until %v: it is valid until %v, want %v", until, got, want)
		}
	}
}

// TestPeerOf: a certificate has one URI with a role and a name.
func TestPeerOf(t *testing.T) {
	for uris, want := range map[string]Peer{
		"quern://client/ann":                        {Client, "ann"},
		"https://client/ann quern://jobtracker/jt1": {JobTracker, "jt1"},
		"":                                      {},
		"https://client/ann":                    {},
		"quern://client/ann quern://c/b":        {},
		"quern://client/ann quern://client/bob": {},
		"quern://admin/ann":                     {},
		"quern://client/":                       {},
		"quern://client/../ann":                 {},
		"quern://client/ann/bob":                {},
		"quern://client/..":                     {},
	} {
		cert := new(x509.Certificate)
		for _, text := range strings.Fields(uris) {
			u, err := url.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			cert.URIs = append(cert.URIs, u)
		}
		got, ok := PeerOf(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}})
		if got != want || ok != (want != Peer{}) {
			t.Errorf("%q: %v, %v, want %v", uris, got, ok, want)
		}
	}
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"alice": true, "tt-1.example.org": true, "a@b": true, "": false, "a/b": false, "a;b": false, "$(a)": false,
		"..": false, ".": false, strings.Repeat("x", maxName+1): false, "ü": false,
	} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestGossipKeyTwice: a file with the same key twice is refused. The keyring has it once, and so would
// differ from the file at each check.
func TestGossipKeyTwice(t *testing.T) {
	key := base64.StdEncoding.EncodeToString(make([]byte, gossipKeySize)) + "\n"
	name := filepath.Join(t.TempDir(), GossipFile)
	if err := os.WriteFile(name, []byte(key+key), 0o600); err != nil {
		t.Fatal(err)
	}
	if keys, err := readGossipKeys(name); err == nil {
		t.Errorf("%d keys are read", len(keys))
	}
}
