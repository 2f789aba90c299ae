package local

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/quernmr/quern/dfs"
)

var _ dfs.Attributed = FS{}

// Attributes implements dfs.Attributed.
func (FS) Attributes(name string) (dfs.Attributes, error) {
	path, err := Path(name)
	if err != nil {
		return dfs.Attributes{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return dfs.Attributes{}, err
	}
	return attributes(path, info), nil
}

// ListAttributes implements dfs.Attributed.
func (FS) ListAttributes(name string) (all []dfs.Attributes, err error) {
	err = list(name, func(path string, info fs.FileInfo) { all = append(all, attributes(path, info)) })
	return all, err
}

func attributes(path string, info fs.FileInfo) dfs.Attributes {
	a := dfs.Attributes{Info: describe(path, info), Length: info.Size(), Mode: uint32(info.Mode().Perm()), Accessed: info.ModTime()}
	if info.Mode()&fs.ModeSticky != 0 {
		a.Mode |= 0o1000
	}
	if !info.IsDir() {
		a.Replicas = 1
	}
	addOwner(&a, info)
	return a
}

// names caches names of users and groups: looking one up can read a file or ask a server.
type names struct {
	mu     sync.Mutex
	known  map[uint32]string
	lookUp func(id string) (string, error)
}

func (n *names) of(id uint32) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok := n.known[id]
	if !ok {
		number := strconv.FormatUint(uint64(id), 10)
		var err error
		if name, err = n.lookUp(number); err != nil {
			name = number // without a name, tools show the number
		}
		n.known[id] = name
	}
	return name
}

var users = &names{known: map[uint32]string{}, lookUp: func(id string) (string, error) {
	u, err := user.LookupId(id)
	if err != nil {
		return "", err
	}
	return u.Username, nil
}}

var groups = &names{known: map[uint32]string{}, lookUp: func(id string) (string, error) {
	g, err := user.LookupGroupId(id)
	if err != nil {
		return "", err
	}
	return g.Name, nil
}}

// SetMode implements dfs.Attributed.
func (FS) SetMode(name string, mode uint32) error {
	bits := fs.FileMode(mode & 0o777)
	if mode&0o1000 != 0 {
		bits |= fs.ModeSticky
	}
	return at(name, func(path string) error { return os.Chmod(path, bits) })
}

// SetTimes implements dfs.Attributed.
func (FS) SetTimes(name string, modified, accessed time.Time) error {
	return at(name, func(path string) error { return os.Chtimes(path, accessed, modified) })
}

// SetOwner implements dfs.Attributed.
func (FS) SetOwner(name, owner, group string) error {
	uid, err := idOf(owner, func(name string) (string, error) {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		return u.Uid, nil
	})
	if err != nil {
		return err
	}
	gid, err := idOf(group, func(name string) (string, error) {
		g, err := user.LookupGroup(name)
		if err != nil {
			return "", err
		}
		return g.Gid, nil
	})
	if err != nil {
		return err
	}
	return at(name, func(path string) error { return os.Chown(path, uid, gid) })
}

// idOf returns the id of a user or group, and -1 for an empty name. A number without a name is an id, as names.of
// returns it.
func idOf(name string, lookUp func(name string) (string, error)) (int, error) {
	if name == "" {
		return -1, nil
	}
	number, err := lookUp(name)
	if err != nil {
		number = name
	}
	id, noNumber := strconv.ParseUint(number, 10, 32)
	if noNumber != nil {
		return 0, cmp.Or(err, noNumber)
	}
	return int(id), nil
}

// Access implements dfs.Attributed.
func (FS) Access(name string, write bool) error {
	const mayRead, mayWrite = 4, 2
	mode := uint32(mayRead)
	if write {
		mode = mayWrite
	}
	return at(name, func(path string) error {
		if err := access(path, mode); err != nil {
			return &fs.PathError{Op: "access", Path: path, Err: err}
		}
		return nil
	})
}

// Usage implements dfs.Attributed. It follows symbolic links, as List does, but not into directories that are above.
func (f FS) Usage(name string) (dfs.Usage, error) {
	u := dfs.Usage{NameQuota: -1, SpaceQuota: -1}
	info, err := f.Stat(name)
	if err == nil {
		err = f.addUsage(&u, info, nil)
	}
	u.Stored = u.Bytes
	return u, err
}

func (f FS) addUsage(u *dfs.Usage, info dfs.Info, above []os.FileInfo) error {
	if !info.Dir {
		u.Files++
		u.Bytes += info.Size
		return nil
	}
	u.Directories++
	path, err := Path(info.Name)
	if err != nil {
		return err
	}
	self, err := os.Stat(path)
	if err != nil {
		return err
	}
	for _, dir := range above {
		if os.SameFile(dir, self) {
			return fmt.Errorf("%s is a directory above itself, by a symbolic link", path)
		}
	}
	entries, err := f.List(info.Name)
	if err != nil {
		return err
	}
	above = append(above[:len(above):len(above)], self)
	for _, entry := range entries {
		if err := f.addUsage(u, entry, above); err != nil {
			return err
		}
	}
	return nil
}

// list calls each for a directory's entries, sorted by name. A dangling link is a file.
func list(name string, each func(path string, info fs.FileInfo)) error {
	dir, err := Path(name)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if target, err := os.Stat(path); err == nil {
				info = target
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since the directory was read
		}
		if err != nil {
			return err
		}
		each(path, info)
	}
	return nil
}
