package replica

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/quernmr/quern/identity"
)

// TestNamesAreProved: a job tracker that answers with the certificate of another one is refused,
// both when it is dialed and as a voter.
func TestNamesAreProved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority, err := identity.OpenAuthority(filepath.Join(dir, "authority"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	protected := func(id string) Config {
		certs := filepath.Join(dir, id)
		if err := authority.Issue(certs, identity.Peer{Role: identity.JobTracker, Name: id}, time.Now(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		self, err := identity.Load(certs, identity.JobTracker, nil)
		if err != nil {
			t.Fatal(err)
		}
		return Config{
			ID: id, Dir: t.TempDir(), Serve: self.Server(identity.JobTracker), Dial: self.Dialer(identity.JobTracker),
		}
	}
	one, two := open(t, protected("jt1")), open(t, protected("jt2"))
	dial := one.cfg.dialer()
	for id, want := range map[string]error{"jt2": nil, "": nil, "jt3": errOtherJobTracker} {
		conn, err := dialTo(dial, id, two.Addr(), patience)
		if !errors.Is(err, want) || (err == nil) != (conn != nil) {
			t.Errorf("dialed as %q: %v", id, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
	if err := one.Bootstrap([]Voter{{"jt1", one.Addr()}}); err != nil {
		t.Fatal(err)
	}
	g := &group{t: t, nodes: []*node{one}}
	g.commit("before")
	if err := one.AddVoter(testContext(t), Voter{"jt3", two.Addr()}); !errors.Is(err, errOtherJobTracker) {
		t.Errorf("jt2 was added as jt3: %v", err)
	}
	if err := one.AddVoter(testContext(t), Voter{"jt2", two.Addr()}); err != nil {
		t.Error(err)
	}
	g.nodes = append(g.nodes, two)
	g.commit("after")
}
