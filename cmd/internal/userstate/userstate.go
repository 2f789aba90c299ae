// Package userstate has the files of one user that daemons and clients share without flags, in
// $XDG_STATE_HOME/quern or else $HOME/.local/state/quern:
//
//	authority/   the automatic authority, see package identity. Keep it secret
//	data/        data directories of daemons without -data
//
// All processes of the user on loopback trust this authority, and processes of other users have no
// certificate of it. The first process makes it. The directory is never in another place such as
// /tmp, where another user could make it first.
package userstate

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/identity"
)

const (
	stateVariable = "XDG_STATE_HOME"
	homeVariable  = "HOME"
)

// place is the directory that a variable names, and Quern's path in it.
type place struct{ variable, base, path string }

func (p place) dir() string { return filepath.Join(p.base, p.path) }

func find(getenv func(string) string) (p place, err error) {
	p = place{stateVariable, getenv(stateVariable), "quern"}
	if p.base == "" {
		p = place{homeVariable, getenv(homeVariable), ".local/state/quern"}
	}
	switch {
	case p.base == "":
		return p, fmt.Errorf("neither %s nor %s is set", stateVariable, homeVariable)
	case !filepath.IsAbs(p.base):
		return p, fmt.Errorf("%s is %q: want an absolute path", p.variable, p.base)
	}
	return p, nil
}

// Dir returns the directory. It need not exist.
func Dir(getenv func(string) string) (string, error) {
	p, err := find(getenv)
	return p.dir(), err
}

// DataDir returns the default of -data for a daemon.
func DataDir(getenv func(string) string, role identity.Role, id string) (string, error) {
	p, err := find(getenv)
	return filepath.Join(p.dir(), "data", string(role)+"-"+id), err
}

// AuthorityDir returns the directory of the authority below Dir, or below the DIR of
// mrsubmit cluster certs.
func AuthorityDir(dir string) string { return filepath.Join(dir, "authority") }

// Authority opens the user's authority, or makes it. It refuses directories that other users own or
// can change.
func Authority(getenv func(string) string) (*identity.Authority, error) {
	p, err := find(getenv)
	if err != nil {
		return nil, err
	}
	base, err := filepath.EvalSymlinks(p.base)
	if errors.Is(err, os.ErrNotExist) && p.variable == stateVariable {
		base, err = p.base, nil // made below; a missing home is an error
	}
	if err == nil {
		err = datadir.Make(base)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.variable, err)
	}
	if err := datadir.Make(p.dir()); err != nil {
		return nil, err
	}
	authority, err := identity.OpenAuthority(AuthorityDir(p.dir()), time.Now())
	if err != nil {
		return nil, err
	}
	return authority, datadir.Make(AuthorityDir(p.dir()))
}

// Identity returns a certificate of the user's authority for this process.
func Identity(getenv func(string) string, peer identity.Peer, log *slog.Logger) (*identity.Identity, error) {
	authority, err := Authority(getenv)
	if err != nil {
		return nil, err
	}
	return authority.Identity(peer, log)
}

// User returns the name of this user in certificates: the login name, or the user id if there is
// none or certificates cannot have it.
func User() string {
	if u, err := user.Current(); err == nil && identity.CheckName(u.Username) == nil {
		return u.Username
	}
	return strconv.Itoa(os.Geteuid())
}
