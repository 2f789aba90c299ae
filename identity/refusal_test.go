package identity

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusalsAreTold: an audit log learns of peers that are denied, expired, of another authority or of a wrong role, of
// connections that end, and of the number of refusals that were not told.
func TestRefusalsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var told []Refusal
		w.server.OnRefusal(func(r Refusal) { told = append(told, r) })
		ann, bob, eve, other := Peer{Client, "ann"}, Peer{TaskTracker, "bob"}, Peer{Client, "eve"}, Peer{JobTracker, "jt2"}
		w.issue("ours", ann, day)
		w.issue("ours", bob, time.Hour)
		w.issue("theirs", eve, day)
		w.issue("ours", other, day)
		w.write(eve, AuthorityFile, "theirs/"+AuthorityFile, "ours/"+AuthorityFile) // it trusts both
		peers := make(map[Peer]*Identity)
		for _, p := range []Peer{ann, bob, eve, other} {
			peers[p] = w.load(p)
		}
		w.mustConnect(peers[ann])
		w.write(w.server.Peer(), DeniedFile, "client ann\n")
		<-time.After(2 * time.Hour) // virtual
		for p, want := range map[Peer]error{ann: ErrNotAdmitted, bob: ErrNotAdmitted, eve: ErrOtherAuthority, other: ErrNotAdmitted} {
			begin := len(told)
			if _, err := w.connect(peers[p]); err == nil {
				t.Fatalf("%v is admitted", p)
			}
			if len(told) != begin+1 {
				t.Fatalf("%v: told %v", p, told[begin:])
			}
			if r := told[begin]; r.Connected || !errors.Is(r.Reason, want) || !strings.HasPrefix(r.Certificate, p.String()+", serial ") || r.From != "pipe" {
				t.Errorf("%v: %+v", p, r)
			}
		}
		if r := told[0]; !r.Connected || !strings.HasPrefix(r.Certificate, "client ann, serial ") {
			t.Errorf("the end of a connection: %+v", r)
		}
		begin := len(told)
		near, far := net.Pipe()
		defer near.Close()
		for range 1000 {
			_ = w.server.admit(tls.ConnectionState{}, []Role{Client}, far)
		}
		<-time.After(time.Minute)
		_ = w.server.admit(tls.ConnectionState{}, []Role{Client}, far)
		if last := told[len(told)-1]; len(told) > begin+30 || last.Suppressed != 1001-(len(told)-begin) {
			t.Errorf("told %d times, the last one counts %d", len(told)-begin, last.Suppressed)
		}
	})
}
