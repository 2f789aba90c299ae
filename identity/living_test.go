package identity

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ends are both ends of a connection.
type ends struct{ dialed, accepted net.Conn }

// world is a job tracker and the directories of its authority and its peers. Run it in synctest.
type world struct {
	t      *testing.T
	dir    string
	server *Identity
	raw    pipeListener
	l      net.Listener
	logged *journal
}

// journal collects log lines of several goroutines.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: t.TempDir(), raw: pipeListener{make(chan net.Conn, 1)}, logged: new(journal)}
	w.issue("ours", Peer{JobTracker, "jt1"}, day*365)
	w.server = w.load(Peer{JobTracker, "jt1"})
	w.server.log = slog.New(slog.NewTextHandler(w.logged, nil))
	w.l = Listen(w.raw, w.server.Server(TaskTracker, Client))
	t.Cleanup(func() { w.l.Close() })
	return w
}

func (w *world) dirOf(p Peer) string { return filepath.Join(w.dir, p.String()) }

// issue makes or replaces the certificate of a peer. The authority is made if it is new.
func (w *world) issue(authority string, p Peer, valid time.Duration) {
	w.t.Helper()
	a, err := OpenAuthority(filepath.Join(w.dir, authority), time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	if err := a.Issue(w.dirOf(p), p, time.Now(), time.Now().Add(valid)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) load(p Peer) *Identity { return load(w.t, w.dirOf(p), p.Role) }

// write writes a file of a peer, from other files of the world and from text.
func (w *world) write(p Peer, name string, from ...string) {
	w.t.Helper()
	var text []byte
	for _, f := range from {
		if content, err := os.ReadFile(filepath.Join(w.dir, f)); err == nil {
			text = append(text, content...)
		} else {
			text = append(text, f...)
		}
	}
	if err := replaceFile(filepath.Join(w.dirOf(p), name), text, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// connect connects a peer to the job tracker.
func (w *world) connect(id *Identity) (ends, error) {
	w.t.Helper()
	near, far := net.Pipe()
	w.raw.conns <- newBuffered(far)
	dialed, err := Connect(w.t.Context(), near, id.Dialer(JobTracker))
	accepted, errAccept := w.l.Accept()
	if errAccept != nil {
		w.t.Fatal(errAccept)
	}
	if err != nil {
		accepted.Close()
		return ends{}, err
	}
	go dialed.Write([]byte{1})
	_, err = io.ReadFull(accepted, make([]byte, 1)) // with TLS 1.3, the dialing side does not see a refusal before
	if err != nil {
		dialed.Close()
		accepted.Close()
		return ends{}, err
	}
	e := ends{dialed, accepted}
	w.t.Cleanup(func() { e.dialed.Close(); e.accepted.Close() })
	return e, nil
}

func (w *world) mustConnect(id *Identity) ends {
	w.t.Helper()
	e, err := w.connect(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// lifetime waits for the end of a connection, up to a limit. It returns its duration from now, and the
// error that each end read.
func (e ends) lifetime(limit time.Duration) (lives time.Duration, dialed, accepted error) {
	begin, first := time.Now(), make(chan error)
	e.dialed.SetReadDeadline(begin.Add(limit))
	e.accepted.SetReadDeadline(begin.Add(limit))
	go func() {
		_, err := e.dialed.Read(make([]byte, 1))
		first <- err
	}()
	_, accepted = e.accepted.Read(make([]byte, 1))
	return time.Since(begin), <-first, accepted
}

// makeOlder makes the connections of an identity older, which costs less time than to let them live.
func makeOlder(id *Identity, by time.Duration) {
	id.living.mu.Lock()
	defer id.living.mu.Unlock()
	for c := range id.living.conns {
		c.began = c.began.Add(-by)
	}
}

// buffered is an end of a pipe that writes without waiting for the other end. Otherwise both ends of a
// handshake could write at once, and wait for each other.
type buffered struct {
	net.Conn
	out    chan []byte
	closed chan struct{}
	once   sync.Once
}

func newBuffered(conn net.Conn) *buffered {
	b := &buffered{Conn: conn, out: make(chan []byte, 64), closed: make(chan struct{})}
	go func() {
		for {
			select {
			case text := <-b.out:
				conn.Write(text) // an error is seen by the next read
			case <-b.closed:
				return
			}
		}
	}()
	return b
}

func (b *buffered) Write(text []byte) (int, error) {
	select {
	case b.out <- bytes.Clone(text):
		return len(text), nil
	case <-b.closed:
		return 0, net.ErrClosed
	}
}

func (b *buffered) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Conn.Close()
}

// within5s is the time in which changed files must have an effect.
const within5s = 5 * time.Second

// TestLivingConnections: a connection ends soon after one of its peers is no longer admitted, and a
// new one is refused.
func TestLivingConnections(t *testing.T) {
	jt1, tt1 := Peer{JobTracker, "jt1"}, Peer{TaskTracker, "tt1"}
	for name, c := range map[string]struct {
		authority string        // of tt1; default: ours
		valid     time.Duration // of the certificate of tt1; default: a year
		change    func(w *world, tt *Identity)
		after     time.Duration // the connection ends after this time
		byDialer  bool          // tt1 ends it, not jt1
		want      string
	}{
		"expired": {valid: time.Hour, after: time.Hour, want: "expired"},
		"authority removed": {authority: "theirs", change: func(w *world, _ *Identity) {
			w.write(jt1, AuthorityFile, "ours/ca.pem")
		}, want: "unknown authority"},
		"authority removed at the dialing side": {authority: "theirs", change: func(w *world, _ *Identity) {
			w.write(tt1, AuthorityFile, "theirs/ca.pem")
		}, byDialer: true, want: "unknown authority"},
		"name denied": {change: func(w *world, _ *Identity) {
			w.write(jt1, DeniedFile, "# stolen\n\nclient alice\ntasktracker tt1\n")
		}, want: "tasktracker tt1 is in the deny list"},
		"name denied at the dialing side": {change: func(w *world, _ *Identity) {
			w.write(tt1, DeniedFile, "jobtracker jt1\n")
		}, byDialer: true, want: "jobtracker jt1 is in the deny list"},
		"serial number denied": {change: func(w *world, tt *Identity) {
			w.write(jt1, DeniedFile, "serial "+tt.pair.Leaf.SerialNumber.Text(16)+"\n")
		}, want: "serial number"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				if c.authority == "" {
					c.authority = "ours"
				}
				if c.valid == 0 {
					c.valid = 365 * day
				}
				w.issue(c.authority, tt1, c.valid)
				if c.authority != "ours" {
					w.write(jt1, AuthorityFile, "ours/ca.pem", "theirs/ca.pem")
					w.write(tt1, AuthorityFile, "ours/ca.pem", "theirs/ca.pem")
					<-time.After(checkPeriod) // of the fake clock: jt1 reads the file again
				}
				w.issue("ours", Peer{TaskTracker, "tt2"}, 365*day)
				tt := w.load(tt1)
				e, other := w.mustConnect(tt), w.mustConnect(w.load(Peer{TaskTracker, "tt2"}))
				if c.change != nil {
					c.change(w, tt)
				}
				lives, dialed, accepted := e.lifetime(c.after + time.Minute)
				if lives < c.after || lives > c.after+within5s {
					t.Errorf("it lived for %v, want %v and up to %v", lives, c.after, within5s)
				}
				err := accepted
				if c.byDialer {
					err = dialed
				}
				if !errors.Is(err, ErrNotAdmitted) || errors.Is(err, net.ErrClosed) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, %v, want %q", dialed, accepted, c.want)
				}
				if Ended(e.dialed) != c.byDialer {
					t.Errorf("Ended: %v", Ended(e.dialed))
				}
				if again, err := w.connect(tt); err == nil {
					t.Errorf("a new connection is admitted: %v", again)
				} else if !strings.Contains(err.Error(), c.want) {
					t.Errorf("a new connection: %v, want %q", err, c.want)
				}
				go other.dialed.Write([]byte{1})
				if _, err := other.accepted.Read(make([]byte, 1)); err != nil {
					t.Errorf("the connection of another peer: %v", err)
				}
				if !c.byDialer && !strings.Contains(w.logged.String(), "no longer admitted") {
					t.Errorf("logged:\n%s", w.logged)
				}
			})
		})
	}
}

// TestConnectionsHaveAnAge: connections end at different times, the dialing side ends them, and the
// peer is admitted again.
func TestConnectionsHaveAnAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.issue("ours", Peer{TaskTracker, "tt1"}, 365*day)
		tt, begin := w.load(Peer{TaskTracker, "tt1"}), time.Now()
		const n = 16
		lives := make(map[time.Duration]bool)
		ended := make(chan time.Duration, n)
		all := make([]ends, n)
		for i := range all {
			all[i] = w.mustConnect(tt)
		}
		makeOlder(tt, minAge-time.Minute)
		makeOlder(w.server, minAge-time.Minute)
		for _, e := range all {
			go func() {
				_, dialed, accepted := e.lifetime(maxAge)
				if !errors.Is(dialed, ErrTooOld) || accepted == nil || errors.Is(accepted, ErrTooOld) || !Ended(e.dialed) {
					t.Errorf("%v, %v: want that the dialing side ends it", dialed, accepted)
				}
				ended <- time.Since(begin)
			}()
		}
		for range n {
			d := <-ended
			lives[d] = true
			if d < time.Minute || d > time.Minute+(maxAge-minAge)/2+within5s {
				t.Errorf("it lived for %v", d)
			}
		}
		if len(lives) < n/2 {
			t.Errorf("of %d connections many end at once: %v", n, lives)
		}
		w.mustConnect(tt)
	})
}

// TestConnectEndsDuringHandshake: the end of the context closes the connection beside its handshake.
func TestConnectEndsDuringHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.issue("ours", Peer{TaskTracker, "tt1"}, 365*day)
		tt := w.load(Peer{TaskTracker, "tt1"})
		ctx, cancel := context.WithCancel(t.Context())
		config := tt.Dialer(JobTracker)
		get := config.GetClientCertificate
		config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cancel()
			return get(request)
		}
		near, far := net.Pipe()
		w.raw.conns <- newBuffered(far)
		if _, err := Connect(ctx, near, config); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want that the context has ended", err)
		}
		if accepted, err := w.l.Accept(); err == nil {
			accepted.Close()
		}
		if len(tt.living.conns) > 0 {
			t.Error("the connection is not forgotten")
		}
	})
}

// TestAcceptedConnectionsHaveAnAge: a peer that does not end its connection is not admitted for ever.
func TestAcceptedConnectionsHaveAnAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := Peer{TaskTracker, "tt1"}
		w.issue("ours", p, 365*day)
		pair, err := tls.LoadX509KeyPair(filepath.Join(w.dirOf(p), CertFile), filepath.Join(w.dirOf(p), KeyFile))
		if err != nil {
			t.Fatal(err)
		}
		near, far := net.Pipe()
		w.raw.conns <- far
		conn := tls.Client(near, &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		accepted, err := w.l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer accepted.Close()
		half := (maxAge - minAge) / 2
		makeOlder(w.server, minAge+half)
		if lives, _, err := (ends{conn, accepted}).lifetime(maxAge); lives > half+within5s || !errors.Is(err, ErrTooOld) {
			t.Errorf("it lived for %v: %v", lives, err)
		}
	})
}

// TestDenyList: a broken list is refused at the start, also an empty or incomplete one.
func TestDenyList(t *testing.T) {
	for text, want := range map[string]string{
		"# none\n": "", "\n": "", "# x\n\n  client alice \n": "", "serial 0A:ff\nserial 0aFF\n": "",
		"":                       "it is empty",
		"client x\nclient alice": "line 2 has no newline at its end",
		"alice\n":                "line 1: 1 words",
		"client alice bob\n":     "line 1: 3 words",
		"client x\nuser alice\n": `line 2: "user": want jobtracker, tasktracker, client or serial`,
		"client a/b\n":           `name "a/b"`,
		"serial xyz\n":           `serial number "xyz"`,
		"serial -1\n":            `serial number "-1"`,
		"serial 0\n":             `serial number "0"`,
		strings.Repeat("#", 2e6): "2000000 bytes",
	} {
		t.Run(fmt.Sprintf("%.30q", text), func(t *testing.T) {
			p := Peer{TaskTracker, "tt1"}
			dir := issue(t, t.TempDir(), p, time.Now(), time.Now().Add(day))
			name := filepath.Join(dir, DeniedFile)
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Load(dir, TaskTracker, nil)
			if want == "" && err != nil || want != "" && (!errors.Is(err, ErrNoIdentity) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name)) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// TestGossipKeys: the file has one or two keys.
func TestGossipKeys(t *testing.T) {
	dir := issue(t, t.TempDir(), Peer{TaskTracker, "tt1"}, time.Now(), time.Now().Add(day))
	id, name := load(t, dir, TaskTracker), filepath.Join(dir, GossipFile)
	one, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	two := strings.Repeat("A", 43) + "=\n"
	for text, want := range map[string]int{
		string(one): 1, two + string(one): 2, string(one) + "\n" + two: 2, two + two + two: 0, "\n": 0, two + "short\n": 0,
	} {
		if err := replaceFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := id.GossipKeys()
		if len(keys) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d keys, %v, want %d", text, len(keys), err, want)
		}
		if want == 2 && string(keys[0]) == string(make([]byte, gossipKeySize)) != strings.HasPrefix(text, two) {
			t.Errorf("%q: another key is the first", text)
		}
	}
	if keys, err := (*Identity)(nil).GossipKeys(); keys != nil || err != nil {
		t.Errorf("without an identity: %v, %v", keys, err)
	}
}
