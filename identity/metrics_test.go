package identity

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMetricsRole: a directory for the role metrics has no gossip key, and listeners admit the role only if
// they name it. Certificates of daemons have the DNS name of their role, and others have none.
func TestMetricsRole(t *testing.T) {
	authority := filepath.Join(t.TempDir(), "authority")
	now := time.Now()
	dirs := make(map[Role]string)
	for _, role := range []Role{JobTracker, TaskTracker, Client, Metrics} {
		dirs[role] = issue(t, authority, Peer{role, "a"}, now, now.Add(day))
		_, err := os.Stat(filepath.Join(dirs[role], GossipFile))
		if has := err == nil; has != (role == JobTracker || role == TaskTracker) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the gossip key: %v", role, err)
		}
		id := load(t, dirs[role], role)
		_, roots := id.current()
		for _, name := range []Role{JobTracker, TaskTracker, Client, Metrics} {
			_, err := id.pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name.DNSName(), CurrentTime: now})
			if ok := err == nil; ok != (name == role && role.daemon()) {
				t.Errorf("a certificate of a %s as %s: %v", role, name.DNSName(), err)
			}
		}
	}
	server, reader := load(t, dirs[JobTracker], JobTracker), load(t, dirs[Metrics], Metrics)
	if _, err := connect(server.Server(JobTracker, TaskTracker, Client), reader.Dialer(JobTracker)); !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("a listener that does not name the role: %v", err)
	}
	if p, err := connect(server.Server(Client, Metrics), reader.Dialer(JobTracker)); err != nil || p != (Peer{Metrics, "a"}) {
		t.Errorf("a listener for metrics sees %v, %v", p, err)
	}
}
