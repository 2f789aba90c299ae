package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Move renames a file, directory or symbolic link. To another mount it copies it with all below it, and then removes the
// source. The copy keeps permissions, times, symbolic links and, if the kernel allows it, owners; it appears when it is
// whole. Without a whole copy the source stays as it is.
func (f FS) Move(ctx context.Context, from, to string) error {
	source, target, err := paths(from, to)
	if err != nil {
		return err
	}
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	rename := f.RenameFile
	if info.IsDir() {
		rename = f.RenameDir
	}
	if err := rename(from, to); !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if err := f.moveByCopy(ctx, source, target, rename); err != nil {
		return fmt.Errorf("move %s to %s, which is on another disk: %w", source, target, err)
	}
	return nil
}

func (f FS) moveByCopy(ctx context.Context, source, target string, rename func(from, to string) error) error {
	if err := apart(source, filepath.Dir(target)); err != nil {
		return err
	}
	m := mover{FS: f, ctx: ctx}
	// Beside the target: a read-only directory can only be renamed there.
	temporary := filepath.Join(filepath.Dir(target), ".moving-"+rand.Text())
	err := m.copy(source, temporary)
	if err == nil {
		err = m.keepAttributes()
	}
	if err == nil {
		err = rename(temporary, target)
	}
	if err == nil {
		err = f.syncDir(filepath.Dir(target))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temporary))
	}
	for _, c := range m.copied { // not RemoveAll: a file may have come since
		if err := os.Remove(c.source); err != nil {
			return fmt.Errorf("it is copied, but the source is not removed: %w", err)
		}
	}
	return f.syncDir(filepath.Dir(source))
}

// apart returns an error if a directory is the source or below it, by a path through another mount.
func apart(source, dir string) error {
	self, err := os.Lstat(source)
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	for {
		above, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if os.SameFile(self, above) {
			return fmt.Errorf("it is below itself: %w", fs.ErrInvalid)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

// mover copies a tree to another mount.
type mover struct {
	FS
	ctx    context.Context
	copied []copied // what is in a directory before it
}

type copied struct {
	source, target string
	info           fs.FileInfo
}

// copy copies a path with all below it. Until keepAttributes, only the user can read the copy.
func (m *mover) copy(source, target string) error {
	if m.ctx.Err() != nil {
		return context.Cause(m.ctx)
	}
	info, err := os.Lstat(source)
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case 0:
		err = m.copyFile(source, target, info)
	case fs.ModeSymlink:
		var to string
		if to, err = os.Readlink(source); err == nil {
			err = os.Symlink(to, target)
		}
	case fs.ModeDir:
		err = m.copyDir(source, target)
	default:
		err = &fs.PathError{Op: "copy", Path: source, Err: errors.New("it is no file, directory or symbolic link")}
	}
	m.copied = append(m.copied, copied{source, target, info})
	return err
}

func (m *mover) copyDir(source, target string) error {
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	if err := os.Mkdir(target, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		if err := m.copy(filepath.Join(source, e.Name()), filepath.Join(target, e.Name())); err != nil {
			return err
		}
	}
	return m.syncDir(target)
}

func (m *mover) copyFile(source, target string, info fs.FileInfo) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	w := &writer{File: out, sync: m.sync}
	const step = 16 << 20 // between looks at the context
	for err == nil && m.ctx.Err() == nil {
		_, err = io.CopyN(out, in, step)
	}
	if err == nil {
		err = context.Cause(m.ctx)
	} else if errors.Is(err, io.EOF) {
		err = unchanged(in, info)
	}
	return errors.Join(err, w.Close())
}

// unchanged returns an error if an open file is not as it was: the end of a growing one would be lost.
func unchanged(f *os.File, before fs.FileInfo) error {
	now, err := f.Stat()
	if err == nil && (!os.SameFile(before, now) || before.Size() != now.Size() || !before.ModTime().Equal(now.ModTime())) {
		err = &fs.PathError{Op: "copy", Path: f.Name(), Err: errors.New("it has changed meanwhile")}
	}
	return err
}

// keepAttributes gives the copies what their sources have, directories after all in them.
func (m *mover) keepAttributes() error {
	for _, c := range m.copied {
		kept := fs.ModePerm | fs.ModeSticky
		if giveOwner(c.target, c.info) {
			kept |= fs.ModeSetuid | fs.ModeSetgid
		}
		if c.info.Mode()&fs.ModeSymlink != 0 {
			continue
		}
		a := attributes(c.source, c.info)
		if err := errors.Join(os.Chtimes(c.target, a.Accessed, a.Modified), os.Chmod(c.target, c.info.Mode()&kept)); err != nil {
			return err
		}
	}
	return nil
}
