package dfstest

import (
	"errors"
	"io/fs"
	"strings"
	"sync"

	"github.com/quernmr/quern/dfs"
)

// Users returns a file system as a user sees it, with owners and permissions as in HDFS. Existing files
// have no owner, and all may use them. May says as which other users the user may act; nil: all.
func Users(f dfs.FS, user string, may func(user string) bool) dfs.FS {
	return &asUser{FS: f, table: &owners{user: user, may: may, nodes: make(map[string]node), views: make(map[string]*asUser)}, user: user, dir: 0o755, file: 0o644}
}

// owners has the owners and permissions of files, by name.
type owners struct {
	user string // the process's own
	may  func(user string) bool

	mu    sync.Mutex
	nodes map[string]node
	views map[string]*asUser
}

type node struct {
	owner string
	bits  uint32
}

// asUser is a view of one user. New directories and files get its permissions.
type asUser struct {
	dfs.FS
	table     *owners
	user      string
	dir, file uint32
}

var _ dfs.Users = (*asUser)(nil)

const (
	enter  = 1
	write  = 2
	read   = 4
	sticky = 0o1000
)

func (n node) allows(user string, need uint32) bool {
	if n.owner == "" {
		return true
	}
	bits := n.bits
	if n.owner == user {
		bits >>= 6
	}
	return bits&need == need
}

// check fails unless the user may enter all directories of a name, and has a permission for the name
// itself and for its directory. The lock is held.
func (u *asUser) check(op, name string, self, parent uint32) error {
	denied := &fs.PathError{Op: op, Path: name, Err: fs.ErrPermission}
	if u.user != u.table.user && u.table.may != nil && !u.table.may(u.user) {
		denied.Err = dfs.ErrActAs
		return denied
	}
	dir := dfs.Dir(name)
	for d := dir; dfs.Dir(d) != d; d = dfs.Dir(d) {
		if !u.table.nodes[d].allows(u.user, enter) {
			return denied
		}
	}
	above, entry := u.table.nodes[dir], u.table.nodes[name]
	if !above.allows(u.user, parent) || !entry.allows(u.user, self) {
		return denied
	}
	if parent == write && entry.owner != "" && above.bits&sticky != 0 && entry.owner != u.user && above.owner != u.user {
		return denied
	}
	return nil
}

// do calls f if the user may.
func (u *asUser) do(op, name string, self, parent uint32, f func() error) error {
	u.table.mu.Lock()
	defer u.table.mu.Unlock()
	if err := u.check(op, name, self, parent); err != nil {
		return err
	}
	return f()
}

func (u *asUser) Open(name string) (file dfs.File, err error) {
	err = u.do("open", name, read, 0, func() error { file, err = u.FS.Open(name); return err })
	return file, err
}

func (u *asUser) Create(name string) (w dfs.Writer, err error) {
	err = u.do("create", name, 0, write, func() error {
		if w, err = u.FS.Create(name); err == nil {
			u.table.nodes[name] = node{u.user, u.file}
		}
		return err
	})
	return w, err
}

func (u *asUser) Mkdir(name string) error {
	return u.do("mkdir", name, 0, write, func() error { return u.mkdir(name) })
}

func (u *asUser) mkdir(name string) error {
	err := u.FS.Mkdir(name)
	if err == nil {
		u.table.nodes[name] = node{u.user, u.dir}
	}
	return err
}

func (u *asUser) MkdirAll(name string) error {
	if dfs.Dir(name) == name {
		return nil
	}
	info, err := u.Stat(name)
	switch {
	case err == nil && info.Dir:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err = u.MkdirAll(dfs.Dir(name)); err == nil {
			err = u.Mkdir(name)
		}
	}
	return err
}

func (u *asUser) Stat(name string) (info dfs.Info, err error) {
	err = u.do("stat", name, 0, 0, func() error { info, err = u.FS.Stat(name); return err })
	return info, err
}

func (u *asUser) List(name string) (all []dfs.Info, err error) {
	err = u.do("list", name, read|enter, 0, func() error { all, err = u.FS.List(name); return err })
	return all, err
}

func (u *asUser) RenameFile(from, to string) error { return u.rename(from, to, u.FS.RenameFile) }
func (u *asUser) RenameDir(from, to string) error  { return u.rename(from, to, u.FS.RenameDir) }

func (u *asUser) rename(from, to string, rename func(from, to string) error) error {
	return u.do("rename", from, 0, write, func() error {
		if err := u.check("rename", to, 0, write); err != nil {
			return err
		}
		if err := rename(from, to); err != nil {
			return err
		}
		for name, n := range u.table.nodes {
			if rest, ok := strings.CutPrefix(name, from); ok && (rest == "" || rest[0] == '/') {
				delete(u.table.nodes, name)
				u.table.nodes[to+rest] = n
			}
		}
		return nil
	})
}

func (u *asUser) Remove(name string) error {
	return u.do("remove", name, 0, write, func() error {
		err := u.FS.Remove(name)
		if err == nil {
			delete(u.table.nodes, name)
		}
		return err
	})
}

func (u *asUser) RemoveAll(name string) error {
	if _, err := u.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return u.do("remove", name, read|write|enter, write, func() error {
		err := u.FS.RemoveAll(name)
		for other := range u.table.nodes {
			if rest, ok := strings.CutPrefix(other, name); err == nil && ok && (rest == "" || rest[0] == '/') {
				delete(u.table.nodes, other)
			}
		}
		return err
	})
}

// Private returns the same view for private files, see dfs.Private.
func (u *asUser) Private() dfs.FS {
	view := *u
	view.dir, view.file = 0o700, 0o600
	return &view
}

// ActAs implements dfs.Users.
func (u *asUser) ActAs(user string) dfs.FS {
	if user == "" {
		user = u.table.user
	}
	u.table.mu.Lock()
	defer u.table.mu.Unlock()
	if u.table.views[user] == nil {
		u.table.views[user] = &asUser{FS: u.FS, table: u.table, user: user, dir: 0o755, file: 0o644}
	}
	return u.table.views[user]
}

// ActOnceAs implements dfs.Users.
func (u *asUser) ActOnceAs(user string) (f dfs.FS, done func()) {
	u.table.mu.Lock()
	defer u.table.mu.Unlock()
	return &asUser{FS: u.FS, table: u.table, user: user, dir: 0o755, file: 0o644}, func() {}
}

// Owner implements dfs.Users.
func (u *asUser) Owner(name string) (owner string, err error) {
	err = u.do("stat", name, 0, 0, func() error {
		owner = u.table.nodes[name].owner
		_, err := u.FS.Stat(name)
		return err
	})
	return owner, err
}

// Share implements dfs.Users.
func (u *asUser) Share(name string, bits uint32) error {
	if err := u.MkdirAll(name); err != nil {
		return err
	}
	return u.do("share", name, 0, 0, func() error {
		n := u.table.nodes[name]
		if n.owner != "" && n.owner != u.user {
			return &fs.PathError{Op: "share", Path: name, Err: fs.ErrPermission}
		}
		if n.owner == "" {
			n.owner = u.user
		}
		u.table.nodes[name] = node{n.owner, n.bits | bits}
		return nil
	})
}

// MakeOwn implements dfs.Users.
func (u *asUser) MakeOwn(name string) error {
	if err := u.Private().MkdirAll(name); err != nil {
		return err
	}
	return u.do("mkdir", name, 0, 0, func() error {
		if u.table.nodes[name].owner != u.user {
			return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrPermission}
		}
		u.table.nodes[name] = node{u.user, 0o700}
		return nil
	})
}
