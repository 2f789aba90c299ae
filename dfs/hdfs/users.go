package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/quernmr/quern/dfs"
)

var _ dfs.Users = (*FS)(nil)

// As returns an FS with the same configuration and login that acts as another user. With Kerberos the
// NameNode must allow that to the login's user (hadoop.proxyuser.*); without, it believes the name. An
// empty user is the login's own.
func (f *FS) As(user string) *FS {
	other := New(f.options)
	other.conf, other.login, other.actsAs = f.conf, f.login, user
	return other
}

// ActAs implements dfs.Users. It keeps an FS for each user, which closes with f. Without open files it
// has no connection.
func (f *FS) ActAs(user string) dfs.FS {
	if user == "" {
		return f
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.acting == nil {
		f.acting = make(map[string]*FS)
	}
	if f.acting[user] == nil {
		f.acting[user] = f.As(user)
		select {
		case <-f.closed:
			f.acting[user].Close()
		default:
		}
	}
	return f.acting[user]
}

// ActOnceAs implements dfs.Users.
func (f *FS) ActOnceAs(user string) (other dfs.FS, done func()) {
	acting := f.As(user)
	return acting, func() { acting.Close() }
}

// Owner implements dfs.Users.
func (f *FS) Owner(name string) (string, error) {
	c, path, name, err := f.resolve("stat", name)
	if err != nil {
		return "", err
	}
	s, err := c.status(path)
	return s.GetOwner(), failure("stat", name, err)
}

func (c *cluster) setPermission(path string, bits uint32) error {
	return c.call("setPermission", message("SetPermissionRequest", "src", path, "permission", permission(bits)), message("SetPermissionResponse"))
}

// Share implements dfs.Users. It sets the mode of a directory that has it already, too: the NameNode lets only the owner do
// that. Another owner could remove and replace what is in the directory.
func (f *FS) Share(name string, bits uint32) error {
	c, path, name, err := f.resolve("share", name)
	if err != nil {
		return err
	}
	s, err := c.status(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = c.makeDir(path, true, bits); err == nil {
			s, err = c.status(path)
		}
	}
	if err != nil {
		return failure("share", name, err)
	}
	if !describe(name, s).Dir {
		return failure("share", name, syscall.ENOTDIR)
	}
	has := s.GetPermission().GetPerm()
	if err = c.setPermission(path, has|bits); errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("it belongs to %s, its mode is %04o and must become %04o: %w", s.GetOwner(), has, has|bits, err)
	}
	return failure("share", name, err)
}

// MakeOwn implements dfs.Users. The NameNode lets only the owner set a mode, whatever the owner's name
// in HDFS is.
func (f *FS) MakeOwn(name string) error {
	c, path, name, err := f.resolve("mkdir", name)
	if err != nil {
		return err
	}
	if err = f.mkdirAll(name, ownerOnly); err != nil {
		return err
	}
	if err = c.setPermission(path, ownerOnly.Allowed); errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("it belongs to another user: %w", err)
	}
	return failure("mkdir", name, err)
}
