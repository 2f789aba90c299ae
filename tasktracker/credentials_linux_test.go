package tasktracker

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// TestKeytabStays: a worker gets the job's own token, in a file of mode 0600, and nothing that names
// the tracker's keytab, even if the operator passes all such variables on. The token is cancelled when
// the submission ends.
func TestKeytabStays(t *testing.T) {
	for _, name := range []string{"KRB5_CLIENT_KTNAME", "KRB5_CLIENT_PRINCIPAL", "KRB5_KTNAME", "KRB5CCNAME", "HADOOP_TOKEN_FILE_LOCATION"} {
		t.Setenv(name, "of the tracker")
	}
	t.Setenv("HADOOP_USER_NAME", "quern")
	cancelled := make(chan string, 1)
	delegate := func(user string, names []string) ([]byte, time.Time, func() error, error) {
		return fmt.Append(nil, user, " ", len(names)), time.Now().Add(time.Hour), func() error {
			cancelled <- user
			return nil
		}, nil
	}
	for _, asOwner := range []bool{false, true} {
		l := startContained(t, Config{Variables: []string{"KRB5_*", "HADOOP_*"}, HDFS: HDFS{Delegate: delegate, AsOwner: asOwner}})
		task := wire.TaskID{Job: job1, Kind: wire.Map}
		got := l.final(l.launchAs(task, wire.Launch{Index: doReport, Owner: "ann"}), wire.AttemptSucceeded).Counters
		tokenOf, user := " 1", "quern"
		if asOwner {
			tokenOf, user = "ann 1", "ann"
		}
		if got.Get("tokens", "-rw------- "+tokenOf) != 1 || got.Get("env", "HADOOP_USER_NAME="+user) != 1 {
			t.Errorf("as owner %t: tokens %v, environment %v", asOwner, got["tokens"], got["env"])
		}
		for v := range got["env"] {
			if strings.Contains(v, "of the tracker") {
				t.Errorf("as owner %t: the worker has %s", asOwner, v)
			}
		}
		l.send(&wire.DropJob{Epoch: 1, Job: job1, EndedStaging: l.staging})
		select {
		case who := <-cancelled:
			if who != strings.TrimSuffix(tokenOf, " 1") {
				t.Errorf("the token of %q is cancelled", who)
			}
		case <-time.After(time.Minute):
			t.Error("no token is cancelled")
		}
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestOwnerIsRefused: an attempt fails for good with the file system's reason if its owner gets no
// token; the next one tries again. A worker of one owner never runs another's attempt.
func TestOwnerIsRefused(t *testing.T) {
	var refuses atomic.Bool
	refuses.Store(true)
	l := startContained(t, Config{HDFS: HDFS{AsOwner: true, Delegate: func(user string, _ []string) ([]byte, time.Time, func() error, error) {
		if refuses.Load() {
			return nil, time.Time{}, nil, fmt.Errorf("%w: User: quern@R is not allowed to impersonate %s", dfs.ErrActAs, user)
		}
		return []byte(user), time.Now().Add(time.Hour), func() error { return nil }, nil
	}}})
	launch := func(n int, owner string) wire.AttemptID {
		return l.launchAs(wire.TaskID{Job: job1, Kind: wire.Map, N: n}, wire.Launch{Index: doReport, Owner: owner})
	}
	if r := l.final(launch(0, "ann"), wire.AttemptFailed); !strings.Contains(r.Error, "is not allowed to impersonate ann") || !r.Fatal {
		t.Errorf("the error is %q, fatal %t", r.Error, r.Fatal)
	}
	refuses.Store(false)
	if r := l.final(launch(1, ""), wire.AttemptFailed); !strings.Contains(r.Error, "no owner") || !r.Fatal {
		t.Errorf("the error is %q, fatal %t", r.Error, r.Fatal)
	}
	for n, owner := range []string{"ann", "bob", "ann"} {
		if got := l.final(launch(n+2, owner), wire.AttemptSucceeded).Counters; got.Get("tokens", "-rw------- "+owner) != 1 {
			t.Errorf("the attempt of %s has tokens %v", owner, got["tokens"])
		}
	}
}
