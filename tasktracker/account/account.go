// Package account finds the accounts of this machine that run the jobs of owners, for -isolation user. It gives
// files to such an account, and does work with its rights.
//
// # Which account
//
// An owner is the name in a client's certificate. If the map has the owner, the map decides. Otherwise the owner's
// account is the one with the same name, with all its groups: in /etc/passwd, or else in the directories that the
// program getent asks, such as LDAP. The map is a file of lines; blank lines
// and lines that begin with # are comments:
//
//	<owner> <account>     an account of this machine, with all its groups
//	<owner> <uid> <gid>   numbers, without further groups
//
// The file is read again for each worker, so that a change needs no restart.
//
// # Files
//
// A directory that belongs to an account is writable for the jobs of its owner. A process of root that then
// uses a path through it may follow a job's symbolic link. So this package makes such directories only in
// directories that no job can write, and package shuffle opens what is in them.
//
// # Invariants
//
//	A1  No account has user id 0, the user id of this process, or one below the minimum, and none has group id 0.
//	A2  Do never uses the rights of root, and the thread that had the account's rights is not used again.
//	A3  Give changes nothing that is not this process's own.
package account

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/quernmr/quern/tasktracker/account/rights"
)

// Account is an account of this machine. Methods of a nil account use the rights of this process.
type Account struct {
	Name   string // for USER and LOGNAME
	UID    uint32
	GID    uint32
	Groups []uint32 // further ones
	Home   string   // clean absolute path; empty: none
}

// User returns the user and groups of the account; nil if it is nil.
func (a *Account) User() *rights.User {
	if a == nil {
		return nil
	}
	return &rights.User{UID: a.UID, GID: a.GID, Groups: a.Groups}
}

// RefusedError reports an owner without an account for jobs here.
type RefusedError struct {
	Owner  string
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("jobs of %q do not run here (-isolation user): %s", e.Owner, e.Reason)
}

// Users finds the accounts of owners.
type Users struct {
	Map  string // path of the map; empty: none
	Min  uint32 // lowest user id
	Self uint32 // user id of this process

	Start Start // of the programs that know directories such as LDAP; nil: as any child

	// Lookup returns the account with a name, for tests; nil: the machine's.
	Lookup func(name string) (*Account, error)
}

// Of returns the account of an owner. The error is a [*RefusedError] unless the map or the machine's list of
// accounts cannot be read.
func (u *Users) Of(owner string) (*Account, error) {
	if owner == "" {
		return nil, &RefusedError{Owner: owner, Reason: "the job has no owner"}
	}
	entries, err := u.Read()
	if err != nil {
		return nil, err
	}
	e, mapped := entries[owner]
	if !mapped {
		e.Account = owner
	}
	a := &Account{Name: owner, UID: e.UID, GID: e.GID}
	if e.Account != "" {
		a, err = u.lookup(e.Account)
		if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
			reason := fmt.Sprintf("this machine has no account %q", e.Account)
			if !mapped {
				reason += ", and -user-map names no other one"
			}
			return nil, &RefusedError{Owner: owner, Reason: reason}
		}
		if err != nil {
			return nil, fmt.Errorf("find the account of %q: %w", owner, err)
		}
	}
	if reason := u.forbids(a); reason != "" {
		return nil, &RefusedError{Owner: owner, Reason: reason}
	}
	return a, nil
}

// forbids returns why no job may have an account; empty: jobs may.
func (u *Users) forbids(a *Account) string {
	switch {
	case a.UID == 0:
		return fmt.Sprintf("account %s is root's: its user id is 0", a.Name)
	case a.UID == u.Self:
		return fmt.Sprintf("account %s has user id %d, which is the task tracker's own", a.Name, a.UID)
	case a.UID < u.Min:
		return fmt.Sprintf("account %s has user id %d, and the lowest one is %d (-min-uid)", a.Name, a.UID, u.Min)
	case a.UID == math.MaxUint32 || a.GID == math.MaxUint32:
		return fmt.Sprintf("account %s has user id %d and group id %d, which the system does not use", a.Name, a.UID, a.GID)
	case a.GID == 0:
		return fmt.Sprintf("account %s has root's group: its group id is 0", a.Name)
	}
	for _, g := range a.Groups {
		if g == 0 {
			return fmt.Sprintf("account %s is a member of root's group, 0", a.Name)
		}
	}
	return ""
}

func (u *Users) lookup(name string) (*Account, error) {
	if u.Lookup != nil {
		return u.Lookup(name)
	}
	found, err := user.Lookup(name)
	if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
		return u.ask(name)
	}
	if err != nil {
		return nil, err
	}
	groups, err := found.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("list the groups of %s: %w", name, err)
	}
	a := &Account{Name: name}
	if filepath.IsAbs(found.HomeDir) {
		a.Home = filepath.Clean(found.HomeDir)
	}
	var errUID, errGID error
	a.UID, errUID = number(found.Uid)
	a.GID, errGID = number(found.Gid)
	if err := errors.Join(errUID, errGID); err != nil {
		return nil, fmt.Errorf("account %s: %w", name, err)
	}
	for _, text := range groups {
		g, err := number(text)
		if err != nil {
			return nil, fmt.Errorf("groups of %s: %w", name, err)
		}
		a.Groups = append(a.Groups, g)
	}
	return a, nil
}

// Entry is a line of a map: an account, or numbers.
type Entry struct {
	Account  string // empty: UID and GID count
	UID, GID uint32
}

// maxMap limits the bytes of a map.
const maxMap = 1 << 20

// Read reads the map. Only root and the user of this process may be able to change it.
func (u *Users) Read() (map[string]Entry, error) {
	if u.Map == "" {
		return nil, nil
	}
	entries, err := u.read()
	if err != nil {
		return nil, fmt.Errorf("read -user-map %s: %w", u.Map, err)
	}
	return entries, nil
}

func (u *Users) read() (map[string]Entry, error) {
	f, err := os.OpenFile(u.Map, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch owner, ok := info.Sys().(*syscall.Stat_t); {
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case ok && owner.Uid != 0 && owner.Uid != u.Self:
		return nil, fmt.Errorf("it belongs to user %d, and must belong to root", owner.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("other users can write it: its mode is %v", info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxMap+1))
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Parse parses a map. It refuses what it does not understand, and names the line.
func Parse(text []byte) (map[string]Entry, error) {
	if len(text) > maxMap {
		return nil, fmt.Errorf("it has more than %d bytes", maxMap)
	}
	entries := make(map[string]Entry)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var fields []string
		for f := range strings.FieldsSeq(line) {
			if fields = append(fields, f); len(fields) > 3 {
				break
			}
		}
		e, err := parseEntry(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if _, twice := entries[fields[0]]; twice {
			return nil, fmt.Errorf("line %d: owner %q is in an earlier line, too", n, fields[0])
		}
		entries[fields[0]] = e
	}
	return entries, nil
}

func parseEntry(fields []string) (e Entry, err error) {
	switch len(fields) {
	case 2:
		if _, err := number(fields[1]); err == nil {
			return e, fmt.Errorf("owner %q has a user id and no group id: want OWNER UID GID, or OWNER ACCOUNT", fields[0])
		}
		return Entry{Account: fields[1]}, nil
	case 3:
		var errUID, errGID error
		e.UID, errUID = number(fields[1])
		e.GID, errGID = number(fields[2])
		return e, errors.Join(errUID, errGID)
	}
	return e, errors.New("want OWNER UID GID, or OWNER ACCOUNT")
}

// number parses a user or group id.
func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%.20q is not a user or group id", text)
	}
	return uint32(n), nil
}
