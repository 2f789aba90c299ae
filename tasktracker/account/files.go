package account

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// MakeDir makes a directory of the account, with mode 0700, and directories above it. Files that this process has
// put into the directory before become the account's too. No job may be able to write the directory above it. A nil
// account only makes it.
func (a *Account) MakeDir(dir string) error {
	if a == nil {
		return os.MkdirAll(dir, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	r, err := a.open(dir)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	// The directory comes before its content: a file that another goroutine makes meanwhile gets the owner
	// of the directory, or is found here.
	if err := errors.Join(r.Chmod(".", 0o700), r.Lchown(".", int(a.UID), int(a.GID))); err != nil {
		return fmt.Errorf("give %s to %s: %w", dir, a.Name, err)
	}
	return a.giveAll(r, dir, ".")
}

// Give gives a directory of this process, and all in it, to the account. It does nothing if the directory is the
// account's already, and fails if it is of a third account. The directory comes last: after a failure, Give can be
// called again.
func (a *Account) Give(dir string) error {
	r, err := a.open(dir)
	if r == nil || err != nil {
		return err
	}
	defer r.Close()
	if err := a.giveAll(r, dir, "."); err != nil {
		return err
	}
	if err := r.Lchown(".", int(a.UID), int(a.GID)); err != nil {
		return fmt.Errorf("give %s to %s: %w", dir, a.Name, err)
	}
	return nil
}

// GiveBelow is Give for a directory below another one, which a submission names. All directories around it must be
// this process's, and no other user may be able to replace something in them. Otherwise a job could put a link there. A nil account
// only checks the directories below top.
func (a *Account) GiveBelow(top, dir string) error {
	at := top
	for i, name := range append([]string{"."}, strings.Split(filepath.Dir(dir), string(filepath.Separator))...) {
		at = filepath.Join(at, name)
		stat := os.Lstat
		if i == 0 {
			stat = os.Stat // the configuration names it
		}
		info, err := stat(at)
		if err != nil {
			return err
		}
		if err := a.keptFrom(info, at); err != nil {
			return err
		}
	}
	if a == nil {
		info, err := os.Lstat(filepath.Join(top, dir))
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", filepath.Join(top, dir))
		}
		return err
	}
	return a.Give(filepath.Join(top, dir))
}

// keptFrom refuses a directory in which another user could replace something.
func (a *Account) keptFrom(info fs.FileInfo, name string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", name)
	case !ok:
		return fmt.Errorf("%s: its owner is not known", name)
	case a == nil:
	case int(st.Uid) != os.Geteuid():
		return &OwnerError{Name: name, UID: st.Uid, Account: &Account{Name: "this process", UID: uint32(os.Geteuid())}}
	case info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("other users can write %s: its mode is %v", name, info.Mode().Perm())
	}
	return nil
}

// open opens a directory of this process; nil: it is the account's already.
func (a *Account) open(dir string) (*os.Root, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	opened, err := r.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%s was replaced", dir)
	}
	if err == nil {
		var mine bool
		if mine, err = a.mayGive(opened, dir); mine {
			return r, nil
		}
	}
	return nil, errors.Join(err, r.Close())
}

// giveAll gives what is in a directory of r to the account.
func (a *Account) giveAll(r *os.Root, top, name string) error {
	f, err := r.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was just removed
	}
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	for _, e := range entries {
		at := filepath.Join(name, e.Name())
		info, err := r.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was just removed
		}
		if err != nil {
			return err
		}
		mine, err := a.mayGive(info, filepath.Join(top, at))
		if err != nil {
			return err
		}
		if mine && info.IsDir() {
			err = a.giveAll(r, top, at)
		}
		if err == nil && mine {
			err = r.Lchown(at, int(a.UID), int(a.GID))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("give %s to %s: %w", filepath.Join(top, at), a.Name, err)
		}
	}
	return nil
}

// OwnerError reports a file of another account, for example as the account of an owner has changed.
type OwnerError struct {
	Name    string
	UID     uint32
	Account *Account
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("%s belongs to user %d, not to user %d of %s", e.Name, e.UID, e.Account.UID, e.Account.Name)
}

// mayGive reports whether a file is this process's, so that the account can get it. Files that are the
// account's already need nothing. Others are refused: a file with a second name may be in use elsewhere, and another user may have
// put a file into a directory that all can write.
func (a *Account) mayGive(info fs.FileInfo, name string) (bool, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return false, fmt.Errorf("%s: its owner is not known", name)
	case st.Uid == a.UID:
		return false, nil
	case int(st.Uid) != os.Geteuid():
		return false, &OwnerError{Name: name, UID: st.Uid, Account: a}
	case info.IsDir() && info.Mode().Perm()&0o022 != 0:
		return false, fmt.Errorf("other users can write %s: its mode is %v", name, info.Mode().Perm())
	case !info.IsDir() && st.Nlink != 1:
		return false, fmt.Errorf("%s has %d names", name, st.Nlink)
	}
	return true, nil
}
