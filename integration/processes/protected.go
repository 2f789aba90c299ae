package processes

import (
	"crypto/tls"
	"fmt"
	"os/user"
	"path/filepath"
	"time"

	"github.com/quernmr/quern/identity"
)

// User is the user of commands on a cluster with -tls-dir.
const User = "alice"

// User returns environment variables that give the cluster a user's state directory of its own,
// where the automatic authority is.
func (c *Cluster) User() []string { return []string{"XDG_STATE_HOME=" + c.state()} }

func (c *Cluster) state() string { return filepath.Join(c.cfg.Dir, "state") }

func (c *Cluster) openAuthority() (err error) {
	switch {
	case c.cfg.Insecure:
		return nil
	case !c.cfg.TLS:
		return c.openAutomatic()
	}
	if c.authority, err = identity.OpenAuthority(filepath.Join(c.cfg.Dir, "certs", "authority"), time.Now()); err != nil {
		return err
	}
	if err := c.Issue(identity.Client, User, time.Now()); err != nil {
		return err
	}
	c.identity, err = identity.Load(c.Certs(identity.Client, User), identity.Client, nil)
	return err
}

// openAutomatic makes this process a client like mrsubmit without flags.
func (c *Cluster) openAutomatic() error {
	authority, err := identity.OpenAuthority(filepath.Join(c.state(), "quern", "authority"), time.Now())
	if err != nil {
		return err
	}
	login, err := user.Current()
	if err != nil {
		return err
	}
	c.identity, err = authority.Identity(identity.Peer{Role: identity.Client, Name: login.Username}, nil)
	return err
}

// Certs returns the directory of a user's or daemon's certificates on a cluster with -tls-dir.
func (c *Cluster) Certs(role identity.Role, name string) string {
	return filepath.Join(c.cfg.Dir, "certs", string(role)+"-"+name)
}

// Issue issues certificates for a user or daemon, valid from now for a day. It replaces older ones.
func (c *Cluster) Issue(role identity.Role, name string, now time.Time) error {
	err := c.authority.Issue(c.Certs(role, name), identity.Peer{Role: role, Name: name}, now, now.Add(24*time.Hour))
	if err != nil {
		return fmt.Errorf("certificates of %s: %w", name, err)
	}
	return nil
}

// Dialer returns this process's TLS settings for connections to daemons of a role; nil
// with -insecure.
func (c *Cluster) Dialer(role identity.Role) *tls.Config { return c.identity.Dialer(role) }
