package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/identity"
)

// tlsUsage is the help of -tls-dir.
const tlsUsage = "`directory` with ca.pem, cert.pem and key.pem of this user, for a protected cluster (default $QUERN_TLS_DIR)"

// identityOf loads the user's certificate for a protected cluster; nil without a directory.
func identityOf(dir string) (*identity.Identity, error) {
	if dir == "" {
		return nil, nil
	}
	return identity.Load(dir, identity.Client, slog.New(slog.DiscardHandler))
}

// certs makes the certificates of a cluster.
func (t *tool) certs(_ context.Context, args []string) int {
	set := newFlags("cluster certs")
	jobTrackers := set.String("jobtracker", "", "`ids` of job trackers, separated by commas")
	taskTrackers := set.String("tasktracker", "", "`ids` of task trackers")
	clients := set.String("client", "", "`names` of users")
	days := set.Int("days", 365, "validity of the certificates in `days`")
	rest, err := parseMixed(set, args)
	switch {
	case err != nil:
	case len(rest) != 1:
		err = usagef("name one directory")
	case *days < 1:
		err = usagef("-days must be at least 1, got %d", *days)
	default:
		var dir string
		if dir, err = local.Path(rest[0]); err != nil {
			break
		}
		err = t.makeCerts(dir, time.Now(), time.Duration(*days)*24*time.Hour, map[identity.Role]string{
			identity.JobTracker: *jobTrackers, identity.TaskTracker: *taskTrackers, identity.Client: *clients,
		})
	}
	return t.exitCode("cluster certs", set, err)
}

// makeCerts makes DIR/authority if it does not exist, and DIR/<role>-<name> for each name.
func (t *tool) makeCerts(dir string, now time.Time, valid time.Duration, names map[identity.Role]string) error {
	var peers []identity.Peer
	for _, role := range []identity.Role{identity.JobTracker, identity.TaskTracker, identity.Client} {
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
		return usagef("give at least one of -jobtracker, -tasktracker and -client")
	}
	authority, err := identity.OpenAuthority(filepath.Join(dir, "authority"), now)
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
