package gossip

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

// deadline limits every wait for an event.
const deadline = 2 * time.Minute

// journal collects log lines. It closes more at each line.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newJournal() *journal { return &journal{more: make(chan struct{})} }

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text.Write(b)
	close(j.more)
	j.more = make(chan struct{})
	return len(b), nil
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) waitFor(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(deadline)
	for {
		j.mu.Lock()
		more, has := j.more, strings.Contains(j.text.String(), text)
		j.mu.Unlock()
		if has {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("never logged: %s\n%s", text, j)
		}
	}
}

// shortenTimes shortens memberlist's times, but leaves enough for a busy machine.
func shortenTimes(c *memberlist.Config) {
	c.ProbeInterval, c.ProbeTimeout = 400*time.Millisecond, 200*time.Millisecond
	c.GossipInterval, c.PushPullInterval = 20*time.Millisecond, 500*time.Millisecond
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 2, 2
}

// patient leaves a member more time to answer, by UDP and then by TCP: on a busy machine it must not seem gone.
func patient(c *memberlist.Config) { c.ProbeInterval, c.ProbeTimeout = 3*time.Second, time.Second }

type process struct {
	*Gossip
	journal *journal
	closed  bool
}

func startProcess(t *testing.T, self Member, join ...string) *process {
	t.Helper()
	return startProcessWith(t, Config{Self: self, Join: join})
}

func startProcessWith(t *testing.T, cfg Config) *process {
	t.Helper()
	p := &process{journal: newJournal()}
	cfg.Logger = slog.New(slog.NewTextHandler(p.journal, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if cfg.Bind == "" {
		cfg.Bind = "127.0.0.1:0"
	}
	tune := cfg.tune
	cfg.tune = func(c *memberlist.Config) {
		shortenTimes(c)
		if tune != nil {
			tune(c)
		}
	}
	var err error
	if p.Gossip, err = Start(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.closed {
			p.kill()
		}
		if t.Failed() {
			t.Logf("%s:\n%s", cfg.Self.ID, p.journal)
		}
	})
	return p
}

// kill ends a process that sends no message to the others.
func (p *process) kill() {
	p.closed = true
	p.mu.Lock()
	p.Gossip.closed = true
	p.mu.Unlock()
	p.cancel()
	p.list.Shutdown()
	p.goroutines.Wait()
}

func jobTracker(id string) Member {
	return Member{ID: id, Role: JobTracker, HTTP: id + ":1", Raft: id + ":2"}
}

func taskTracker(id string) Member { return Member{ID: id, Role: TaskTracker} }

// awaitMembers waits until the members of a process meet a condition.
func (p *process) awaitMembers(t *testing.T, what string, condition func([]Member) bool) {
	t.Helper()
	timeout := time.After(deadline)
	for {
		changed := p.Changed()
		members := p.Members()
		if condition(members) {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%s: condition never met: %s; it sees %+v", p.Self().ID, what, members)
		}
	}
}

func (p *process) awaitIDs(t *testing.T, ids ...string) {
	t.Helper()
	p.awaitMembers(t, "sees "+strings.Join(ids, " "), func(members []Member) bool {
		var got []string
		for _, m := range members {
			got = append(got, m.ID)
		}
		return slices.Equal(got, ids)
	})
}

func TestProcessesFindEachOther(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	b := startProcess(t, jobTracker("b"), a.Addr())
	c := startProcess(t, taskTracker("c"), a.Addr())
	for _, p := range []*process{a, b, c} {
		p.awaitIDs(t, "a", "b", "c")
		if got := p.Members()[1]; got.HTTP != "b:1" || got.Raft != "b:2" || got.Role != JobTracker {
			t.Errorf("b is known as %+v", got)
		}
	}
	err := b.Update(func(m Member) Member {
		m.Cluster = "x"
		return m
	})
	if err != nil {
		t.Fatal(err)
	}
	c.awaitMembers(t, "gets b's change", func(m []Member) bool { return m[1].Cluster == "x" })
	b.closed = true
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	a.awaitIDs(t, "a", "c")
	c.awaitIDs(t, "a", "c")
}

func TestJoinUntilAnAddressAnswers(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	addr := a.Addr()
	a.kill()
	b := startProcess(t, jobTracker("b"), addr, "[::1]:x", "no-such-host.invalid:1")
	a = startProcessWith(t, Config{Self: jobTracker("a"), Bind: addr})
	a.awaitIDs(t, "a", "b")
	b.awaitIDs(t, "a", "b")
}

// TestFirstJoinFindsAll: when JoinTried is closed, a process knows all members.
func TestFirstJoinFindsAll(t *testing.T) {
	a := startProcessWith(t, Config{Self: jobTracker("a"), tune: patient})
	b := startProcessWith(t, Config{Self: jobTracker("b"), Join: []string{a.Addr()}, tune: patient})
	a.awaitIDs(t, "a", "b")
	b.awaitIDs(t, "a", "b")
	alone := startProcess(t, taskTracker("alone"))
	c := startProcessWith(t, Config{Self: taskTracker("c"), Join: []string{"127.0.0.1:1", a.Addr(), "no-such-host.invalid:1"}, tune: patient})
	for _, p := range []*process{alone, c} {
		select {
		case <-p.JoinTried():
		case <-time.After(deadline):
			t.Fatal("never tried to join")
		}
	}
	if m := c.Members(); len(m) != 3 {
		t.Errorf("c knows %+v", m)
	}
}

func TestRestartedProcessIsFoundAtOnce(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	b := startProcess(t, jobTracker("b"), a.Addr())
	a.awaitIDs(t, "a", "b")
	b.kill()
	again := jobTracker("b")
	again.HTTP = "elsewhere:1"
	startProcess(t, again, a.Addr())
	a.awaitMembers(t, "sees the new b", func(m []Member) bool { return len(m) == 2 && m[1].HTTP == "elsewhere:1" })
	a.awaitMembers(t, "has only one b", func(m []Member) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(m) == 2 && m[1].HTTP == "elsewhere:1" && len(a.nodes) == 1
	})
}

// TestRestartWithClockSetBack: after the clock was set back, a restarted process seems older than
// its predecessor. It is found when the predecessor is suspected.
func TestRestartWithClockSetBack(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	b := startProcess(t, jobTracker("b"), a.Addr())
	a.awaitIDs(t, "a", "b")
	b.kill()
	again := jobTracker("b")
	again.HTTP, again.Started = "elsewhere:1", b.Self().Started-int64(time.Hour)
	startProcess(t, again, a.Addr())
	a.awaitMembers(t, "sees the new b", func(m []Member) bool { return len(m) == 2 && m[1].HTTP == "elsewhere:1" })
}

func TestADeadProcessIsSuspectedAndForgotten(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	b := startProcess(t, jobTracker("b"), a.Addr())
	a.awaitIDs(t, "a", "b")
	b.kill()
	a.awaitMembers(t, "suspects b", func(m []Member) bool { return len(m) == 1 || m[1].Suspect })
	a.awaitIDs(t, "a")
}

func TestClustersStayApart(t *testing.T) {
	one, other := jobTracker("a"), jobTracker("b")
	one.Cluster, other.Cluster = "one", "other"
	a := startProcess(t, one)
	b := startProcess(t, other, a.Addr())
	timeout := time.After(deadline)
	for changed := b.Changed(); len(b.Foreign()) == 0; changed = b.Changed() {
		select {
		case <-changed:
		case <-timeout:
			t.Fatal("b never refused the other cluster")
		}
	}
	if got := b.Foreign()[0]; got.ID != "a" || got.Cluster != "one" {
		t.Errorf("foreign: %+v", got)
	}
	a.awaitIDs(t, "a")
	b.awaitIDs(t, "b")
	a.journal.waitFor(t, "refused a job tracker of another cluster")
	startProcess(t, jobTracker("new"), a.Addr()).awaitIDs(t, "a", "new")
	a.awaitIDs(t, "a", "new")
}

func TestOtherLabelIsIgnored(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	startProcessWith(t, Config{Self: jobTracker("b"), Join: []string{a.Addr()}, Label: "something else"})
	a.journal.waitFor(t, "label")
	a.awaitIDs(t, "a")
}

// TestWithoutTheKey: a process without the right key finds no member, and others do not find it.
func TestWithoutTheKey(t *testing.T) {
	key, other := bytes.Repeat([]byte{7}, 32), bytes.Repeat([]byte{8}, 32)
	a := startProcessWith(t, Config{Self: jobTracker("a"), Key: key})
	for id, wrong := range map[string][]byte{"rogue": nil, "thief": other} {
		p := startProcessWith(t, Config{Self: taskTracker(id), Join: []string{a.Addr()}, Key: wrong})
		select {
		case <-p.JoinTried():
		case <-time.After(deadline):
			t.Fatalf("%s did not try to join", id)
		}
		p.journal.waitFor(t, "cannot join")
		p.awaitIDs(t, id)
	}
	startProcessWith(t, Config{Self: taskTracker("b"), Join: []string{a.Addr()}, Key: key}).awaitIDs(t, "a", "b")
	a.awaitIDs(t, "a", "b")
}

// TestSplitHeals: a and b have found each other through a third process. They lose it, and then
// each other for a time. They must find each other again.
func TestSplitHeals(t *testing.T) {
	var cut atomic.Bool
	drop := func(c *memberlist.Config) { c.Transport = newDropTransport(t, c, &cut, &cut) }
	seed := startProcess(t, jobTracker("seed"))
	a := startProcessWith(t, Config{Self: jobTracker("a"), Join: []string{seed.Addr()}, tune: drop})
	b := startProcess(t, jobTracker("b"), seed.Addr())
	a.awaitIDs(t, "a", "b", "seed")
	b.awaitIDs(t, "a", "b", "seed")
	seed.kill()
	cut.Store(true)
	a.awaitIDs(t, "a")
	b.awaitIDs(t, "b")
	cut.Store(false)
	a.awaitIDs(t, "a", "b")
	b.awaitIDs(t, "a", "b")
}

func TestBlockedUDPIsLogged(t *testing.T) {
	var udp, tcp atomic.Bool
	udp.Store(true)
	a := startProcessWith(t, Config{Self: jobTracker("a"), tune: patient})
	b := startProcessWith(t, Config{Self: taskTracker("b"), Join: []string{a.Addr()}, tune: func(c *memberlist.Config) {
		patient(c)
		c.Transport = newDropTransport(t, c, &udp, &tcp)
	}})
	a.awaitIDs(t, "a", "b")
	b.awaitIDs(t, "a", "b")
	b.journal.waitFor(t, "UDP packets do not reach that member")
	b.journal.waitFor(t, "UDP packets from that member do not arrive")
	if text := b.journal.String(); strings.Contains(text, "cannot connect to this one") {
		t.Errorf("a failure of TCP is logged:\n%s", text)
	}
	a.journal.waitFor(t, "UDP packets do not reach that member")
	udp.Store(false)
	b.journal.waitFor(t, "a failed direction works again")
	for _, p := range []*process{a, b} {
		if text := p.journal.String(); strings.Contains(text, "gossip: gone") {
			t.Errorf("%s lost a member that TCP reaches", p.Self().ID)
		}
	}
}

func TestFailedWritesAreLoggedOnce(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	w := &transport{NodeAwareTransport: failingTransport{}, g: a.Gossip, failed: make(map[string]time.Time)}
	for range 3 {
		w.WriteTo([]byte("x"), "10.0.0.1:1")
	}
	text := a.journal.String()
	if strings.Count(text, "UDP packets cannot be sent") != 1 || !strings.Contains(text, "network is unreachable") {
		t.Errorf("logged:\n%s", text)
	}
}

func TestDuplicate(t *testing.T) {
	a := startProcess(t, jobTracker("a"))
	startProcess(t, jobTracker("a"), a.Addr())
	a.awaitMembers(t, "meets its duplicate", func([]Member) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, n := range a.nodes {
			n.since = n.since.Add(-duplicateAge)
		}
		return len(a.nodes) == 1
	})
	if other, ok := a.Duplicate(); !ok || other.ID != "a" {
		t.Errorf("duplicate: %+v, %v", other, ok)
	}
	if m := a.Members(); len(m) != 1 || m[0] != a.Self() {
		t.Errorf("members: %+v", m)
	}
}

func TestRefusedConfigurations(t *testing.T) {
	other := startProcess(t, jobTracker("a"))
	for _, c := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no id", Config{Self: Member{Role: JobTracker}, Bind: "127.0.0.1:0"}, "no id"},
		{"long id", Config{Self: jobTracker(strings.Repeat("x", 500)), Bind: "127.0.0.1:0"}, "too long"},
		{"no port", Config{Self: jobTracker("a"), Bind: "127.0.0.1"}, "missing port"},
		{"port by name", Config{Self: jobTracker("a"), Bind: "127.0.0.1:http"}, "not a number"},
		{"unknown host", Config{Self: jobTracker("a"), Bind: "no-such-host.invalid:0"}, "no-such-host.invalid"},
		{"unknown advertised host", Config{Self: jobTracker("a"), Bind: "127.0.0.1:0", Advertise: "no-such-host.invalid"}, "advertise"},
		{"port in use", Config{Self: jobTracker("b"), Bind: other.Addr()}, "in use"},
	} {
		g, err := Start(c.cfg)
		if err == nil {
			g.Close()
			t.Errorf("%s: Start succeeds", c.name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestNamesAreResolved(t *testing.T) {
	a := startProcessWith(t, Config{Self: jobTracker("a"), Bind: "localhost:0", Advertise: "localhost:7"})
	if a.Addr() != "127.0.0.1:7" && a.Addr() != "[::1]:7" {
		t.Errorf("advertised as %s", a.Addr())
	}
}

// dropTransport drops packets and streams in both directions while its flags are set.
type dropTransport struct {
	*memberlist.NetTransport
	udp, tcp *atomic.Bool
	packets  chan *memberlist.Packet
	streams  chan net.Conn
	closing  chan struct{}
	closed   chan struct{}
}

func newDropTransport(t *testing.T, c *memberlist.Config, udp, tcp *atomic.Bool) *dropTransport {
	inner, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{BindAddrs: []string{c.BindAddr}, BindPort: c.BindPort, Logger: c.Logger})
	if err != nil {
		t.Fatal(err)
	}
	d := &dropTransport{inner, udp, tcp, make(chan *memberlist.Packet), make(chan net.Conn), make(chan struct{}), make(chan struct{})}
	go d.forward()
	return d
}

func (d *dropTransport) forward() {
	for {
		select {
		case p := <-d.NetTransport.PacketCh():
			if !d.udp.Load() {
				select {
				case d.packets <- p:
				case <-d.closing:
				}
			}
		case s := <-d.NetTransport.StreamCh():
			if d.tcp.Load() {
				s.Close()
				continue
			}
			select {
			case d.streams <- s:
			case <-d.closing:
				s.Close()
			}
		case <-d.closed:
			return
		}
	}
}

func (d *dropTransport) Shutdown() error {
	close(d.closing)
	defer close(d.closed)
	return d.NetTransport.Shutdown()
}

func (d *dropTransport) PacketCh() <-chan *memberlist.Packet { return d.packets }

func (d *dropTransport) StreamCh() <-chan net.Conn { return d.streams }

func (d *dropTransport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	if d.udp.Load() {
		return time.Now(), nil
	}
	return d.NetTransport.WriteToAddress(b, a)
}

func (d *dropTransport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if d.tcp.Load() {
		return nil, errors.New("cut off")
	}
	return d.NetTransport.DialAddressTimeout(a, timeout)
}

// failingTransport fails all writes.
type failingTransport struct{ memberlist.NodeAwareTransport }

func (failingTransport) WriteToAddress([]byte, memberlist.Address) (time.Time, error) {
	return time.Time{}, &net.OpError{Op: "write", Net: "udp", Err: errors.New("network is unreachable")}
}
