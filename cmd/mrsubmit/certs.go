package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/identity"
)

// security says how a command protects its connections to the cluster.
type security struct {
	tlsDir   string
	insecure bool
}

func (t *tool) securityFlags(set *flag.FlagSet, s *security) {
	set.StringVar(&s.tlsDir, "tls-dir", t.getenv("QUERN_TLS_DIR"), "`directory` with ca.pem, cert.pem and key.pem of this user (default $QUERN_TLS_DIR, else a certificate of the user's own authority)")
	set.BoolVar(&s.insecure, "insecure", t.getenv("QUERN_INSECURE") == "1", "connect without TLS to daemons that use -insecure (default true if $QUERN_INSECURE is 1)")
}

// identityOf loads the user's certificate, or makes one with the user's own authority. It returns nil
// with -insecure.
func (t *tool) identityOf(s security) (*identity.Identity, error) {
	switch env := t.getenv("QUERN_INSECURE"); {
	case env != "" && env != "1":
		return nil, usagef("QUERN_INSECURE is %q: want 1, or nothing", env)
	case s.insecure && s.tlsDir != "":
		return nil, usagef("-tls-dir (or QUERN_TLS_DIR) and -insecure (or QUERN_INSECURE): one or the other")
	case s.insecure:
		return nil, nil
	case s.tlsDir != "":
		return identity.Load(s.tlsDir, identity.Client, nil)
	}
	self, err := userstate.Identity(t.getenv, identity.Peer{Role: identity.Client, Name: userstate.User()}, nil)
	if err != nil {
		return nil, usagef("no automatic certificate: %v; name one with -tls-dir, or use no TLS with -insecure", err)
	}
	return self, nil
}

// certs makes the certificates of a cluster.
func (t *tool) certs(_ context.Context, args []string) int {
	set := newFlags("cluster certs")
	jobTrackers := set.String("jobtracker", "", "`ids` of job trackers, separated by commas")
	taskTrackers := set.String("tasktracker", "", "`ids` of task trackers")
	clients := set.String("client", "", "`names` of users")
	metrics := set.String("metrics", "", "`names` of programs that read metrics, such as Prometheus, and may do nothing else")
	days := set.Int("days", 365, "validity of the certificates in `days`")
	rest, err := t.parse(set, args, anyNumber)
	switch {
	case err != nil:
	case len(rest) > 1:
		err = usagef("name one directory")
	case *days < 1:
		err = usagef("-days must be at least 1, got %d", *days)
	default:
		var dir string
		if dir, err = t.certsDir(rest); err != nil {
			break
		}
		err = t.makeCerts(dir, time.Now(), time.Duration(*days)*24*time.Hour, map[identity.Role]string{
			identity.JobTracker: *jobTrackers, identity.TaskTracker: *taskTrackers, identity.Client: *clients,
			identity.Metrics: *metrics,
		})
	}
	return t.exitCode("cluster certs", set, err)
}

// certsDir returns the directory of an authority and its certificates: by default that of the user's
// own one.
func (t *tool) certsDir(args []string) (string, error) {
	if len(args) == 1 {
		return local.Path(args[0])
	}
	if _, err := userstate.Authority(t.getenv); err != nil { // it checks the directory
		return "", usagef("name a directory: %v", err)
	}
	return userstate.Dir(t.getenv)
}

// makeCerts makes DIR/authority if it does not exist, and DIR/<role>-<name> for each name.
func (t *tool) makeCerts(dir string, now time.Time, valid time.Duration, names map[identity.Role]string) error {
	var peers []identity.Peer
	for _, role := range []identity.Role{identity.JobTracker, identity.TaskTracker, identity.Client, identity.Metrics} {
		for name := range strings.SplitSeq(names[role], ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if err := identity.CheckName(name); err != nil {
				return usagef("-%s: %v", role, err)
			}
			peers = append(peers, identity.Peer{Role: role, Name: name})
		}
	}
	if len(peers) == 0 {
		return usagef("give at least one of -jobtracker, -tasktracker, -client and -metrics")
	}
	authority, err := identity.OpenAuthority(userstate.AuthorityDir(dir), now)
	if err != nil {
		return err
	}
	for _, p := range peers {
		own := filepath.Join(dir, string(p.Role)+"-"+p.Name)
		if err := authority.Issue(own, p, now, now.Add(valid)); err != nil {
			return err
		}
		fmt.Fprintln(t.stdout, own)
	}
	return nil
}
