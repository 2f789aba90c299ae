package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/tasktracker"
	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/isolation"
)

// isolationFlags are the flags for the isolation of jobs.
type isolationFlags struct {
	level, shown, hidden, outputs, users string
	minUID                               uint
}

func (f *isolationFlags) flags(set *flag.FlagSet) {
	set.StringVar(&f.level, "isolation", "", "`level` that keeps jobs from this daemon and from each other: none, namespace, or user, which also runs each job as its owner; namespace and user fail to start where they do not work (default namespace where it works)")
	set.StringVar(&f.shown, "job-paths", "", "more `paths` that jobs in namespaces can read, separated by commas (default the system's and what the job names)")
	set.StringVar(&f.hidden, "job-hidden", "", "more `paths` that jobs in namespaces do not see, also in what they name, separated by commas (default the files of daemons)")
	set.StringVar(&f.outputs, "job-outputs", "", "`directories` in and below which jobs in namespaces may have their outputs, separated by commas (default for root without -isolation user "+strings.Join(isolation.RootOutputs, ",")+", for others all but those of programs)")
	set.StringVar(&f.users, "user-map", "", "`file` with the accounts of owners for -isolation user: lines OWNER ACCOUNT or OWNER UID GID (default the account with the owner's name)")
	set.UintVar(&f.minUID, "min-uid", defaultMinUID, "lowest user `id` of -isolation user")
}

// defaultMinUID is the first user id of people on most systems.
const defaultMinUID = 1000

// jobIsolation checks the flags. It hides keys, logins, the automatic authority, the audit log with its rotated files and the map of accounts.
func jobIsolation(f *isolationFlags, s *daemon.Security, getenv func(string) string) (tasktracker.Isolation, error) {
	i := tasktracker.Isolation{Level: isolation.Level(f.level), Shown: daemon.SplitList(f.shown)}
	switch i.Level {
	case "", isolation.None, isolation.Namespace:
		if f.users != "" || f.minUID != defaultMinUID {
			return i, daemon.Usagef("-user-map and -min-uid need -isolation user")
		}
	case isolation.User:
		if f.minUID < 1 || f.minUID >= math.MaxUint32 {
			return i, daemon.Usagef("-min-uid must be from 1 to %d, got %d", uint32(math.MaxUint32-1), f.minUID)
		}
		i.Users = account.Users{Min: uint32(f.minUID), Self: uint32(os.Geteuid())}
	default:
		return i, daemon.Usagef("-isolation %s: want none, namespace or user", f.level)
	}
	i.Outputs, i.Hidden = daemon.SplitList(f.outputs), daemon.SplitList(f.hidden)
	for name, list := range map[string][]string{"-job-paths": i.Shown, "-job-hidden": i.Hidden, "-job-outputs": i.Outputs} {
		for _, path := range list {
			if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
				return i, daemon.Usagef("%s %s: want absolute paths, and not /", name, path)
			}
		}
	}
	for name, path := range map[string]string{"-tls-dir": s.TLSDir, "-audit-log": s.AuditLog, "-user-map": f.users} {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return i, daemon.Usagef("%s: %v", name, err)
		}
		if name == "-audit-log" {
			i.Hidden = append(i.Hidden, audit.Files(abs)...)
			i.Replaced = audit.Files(abs)
			continue
		}
		i.Hidden = append(i.Hidden, abs)
		if name == "-user-map" {
			i.Users.Map = abs
		}
	}
	keytab, tickets := logins(getenv)
	for _, path := range []string{keytab, tickets} {
		if path != "" {
			i.Hidden = append(i.Hidden, path)
		}
	}
	if tickets != "" {
		i.Replaced = append(i.Replaced, tickets)
	}
	if state, err := userstate.Dir(getenv); err == nil { // else this user has no automatic authority
		i.Hidden = append(i.Hidden, state)
	}
	return i, nil
}

// logins returns the keytab and the ticket file with which package hdfs logs in; empty: none.
func logins(getenv func(string) string) (keytab, tickets string) {
	keytab, tickets = strings.TrimPrefix(getenv("KRB5_CLIENT_KTNAME"), "FILE:"), strings.TrimPrefix(getenv("KRB5CCNAME"), "FILE:")
	if own := fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid()); tickets == "" {
		if _, err := os.Lstat(own); err == nil {
			tickets = own
		}
	}
	absolute := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return "" // another kind of cache, or a file that only its working directory names
	}
	return absolute(keytab), absolute(tickets)
}
