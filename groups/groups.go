// Package groups reads from a file which users are in which groups, for the groups in ACLs.
//
// # The file
//
// The file has the format of /etc/group, because each system has a program that prints this format
// for all its users, whatever directory service has them: getent group.
//
//	name:password:number:user,user
//
// Password and number have no effect, and may be empty. Empty lines and lines that begin with "#" are
// skipped. If several lines have the same name, their users add up, as on the system. A user's primary
// group is not in this format: such a user must be added to the group's line.
//
// # Invariants
//
//	G1  A Table never changes, so it can be part of a request to a core. A nil Table has no groups.
//	G2  A file with a mistake is not used: the last good table stays in force, and the line is logged
//	    once. An empty file is one, and a last line without a newline: a file that is being written may
//	    have a part of a name, which another user has.
//	G3  A change has effect within [Period] after the file is written or replaced.
//	G4  Parse allocates memory in proportion to its input, and refuses more than maxFile bytes.
package groups

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/wire"
)

// maxFile is the maximum size of a file in bytes.
const maxFile = 8 << 20

// Period is the usual time between looks at the file.
const Period = 2 * time.Second

// Table says which users are in which groups.
type Table struct {
	users map[string][]string // of each group, sorted
}

// Has reports whether a user is in a group.
func (t *Table) Has(group, user string) bool {
	if t == nil {
		return false
	}
	_, found := slices.BinarySearch(t.users[group], user)
	return found
}

// Names returns the groups, sorted.
func (t *Table) Names() []string {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.users))
}

// Parse reads a file, see the package comment. Errors begin with the number of the line.
func Parse(text []byte) (*Table, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	t := &Table{users: make(map[string][]string)}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line = strings.TrimSuffix(line, "\n"); line == "" || line[0] == '#' {
			continue
		}
		if err := t.add(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	for name, users := range t.users {
		slices.Sort(users)
		t.users[name] = slices.Compact(users)
	}
	return t, nil
}

// add adds a line.
func (t *Table) add(line string) error {
	if n := strings.Count(line, ":"); n != 3 {
		return fmt.Errorf("%.60q has %d colons, want 3: name:password:number:user,user", line, n)
	}
	name, rest, _ := strings.Cut(line, ":")
	if err := wire.CheckACLName(name); err != nil {
		return fmt.Errorf("group %w", err)
	}
	list := rest[strings.LastIndexByte(rest, ':')+1:]
	users := t.users[name]
	if list != "" {
		users = slices.Grow(users, strings.Count(list, ",")+1)
		for user := range strings.SplitSeq(list, ",") {
			if err := wire.CheckACLName(user); err != nil {
				return fmt.Errorf("group %s: user %w", name, err)
			}
			users = append(users, user)
		}
	}
	t.users[name] = users
	return nil
}

// File is a file that is read again when it changes. Any goroutine may call Table.
type File struct {
	name   string
	logger *slog.Logger
	table  atomic.Pointer[Table]

	hash    [sha256.Size]byte // of the last content that was parsed
	errText string            // of the last look; empty: none
}

// Open reads a file. Watch reads it again.
func Open(name string, logger *slog.Logger) (*File, error) {
	f := &File{name: name, logger: logger}
	text, err := read(name)
	if err != nil {
		return nil, err
	}
	t, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.table.Store(t)
	f.hash = sha256.Sum256(text)
	return f, nil
}

// Table returns the groups of the last good content. For a nil File it is nil.
func (f *File) Table() *Table {
	if f == nil {
		return nil
	}
	return f.table.Load()
}

// Watch looks at the file again and again until ctx ends.
func (f *File) Watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f.look()
		}
	}
}

// look reads the whole file: a changed one may have the same size and time.
func (f *File) look() {
	text, err := read(f.name)
	if err == nil {
		hash := sha256.Sum256(text)
		if hash == f.hash {
			if f.errText != "" {
				f.logger.Info("the groups can be read again", "file", f.name)
			}
			f.errText = ""
			return
		}
		var t *Table
		if t, err = Parse(text); err == nil {
			f.table.Store(t)
			f.hash, f.errText = hash, ""
			f.logger.Info("new groups", "file", f.name, "groups", len(t.users))
			return
		}
		err = fmt.Errorf("%s: %w", f.name, err)
	}
	if f.errText != err.Error() {
		f.errText = err.Error()
		f.logger.Warn("the groups stay as they are", "error", err)
	}
}

// read reads a file. Users who can write it decide who is in which group, so it refuses a file that
// all can write. It also refuses one that may be incomplete.
func read(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("all users can write %s (mode %v): chmod o-w it: %w", name, info.Mode().Perm(), fs.ErrPermission)
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, io.LimitReader(file, maxFile+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	switch {
	case text.Len() == 0:
		return nil, fmt.Errorf("%s is empty, as while it is written: for no groups, write a comment into it", name)
	case text.Len() <= maxFile && !bytes.HasSuffix(text.Bytes(), []byte("\n")):
		return nil, fmt.Errorf("%s has no newline at its end: it may be incomplete", name)
	}
	return text.Bytes(), nil
}
