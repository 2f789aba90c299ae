package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// target is the directory that an archive is unpacked into.
type target struct {
	ctx    context.Context
	root   *os.Root
	limits Limits
	left   Limits            // what may still be made
	dirs   map[string]bool   // made so far
	links  map[string]string // symbolic links by their names, which are made last
}

// place returns the clean name of a member below the directory; "." is the directory itself.
func (t *target) place(member string) (string, error) {
	name := path.Clean(member)
	switch {
	case len(member) > maxName:
		return "", refuse(member[:maxName], "has a name of %d bytes, at most %d are allowed", len(member), maxName)
	case path.IsAbs(member):
		return "", refuse(member, "has an absolute name")
	case strings.ContainsRune(member, 0):
		return "", refuse(member, "has a name with a zero byte")
	case !fs.ValidPath(name):
		return "", refuse(member, "leads out of the directory")
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, link := t.links[dir]; link {
			return "", refuse(member, "is below the link %q", dir)
		}
	}
	return name, nil
}

// count refuses an entry beyond the limit.
func (t *target) count() error {
	if err := context.Cause(t.ctx); err != nil {
		return err
	}
	if t.left.Entries--; t.left.Entries < 0 {
		return fmt.Errorf("%w: it has more than %d files, directories and links", ErrRefused, t.limits.Entries)
	}
	return nil
}

// dir makes a directory and those above it.
func (t *target) dir(name string) error {
	if name == "." || t.dirs[name] {
		return nil
	}
	if err := t.dir(path.Dir(name)); err != nil {
		return err
	}
	if err := t.count(); err != nil {
		return err
	}
	if _, link := t.links[name]; link {
		return refuse(name, "is a link and a directory")
	}
	if err := t.root.Mkdir(name, 0o755); errors.Is(err, fs.ErrExist) {
		return refuse(name, "is a file and a directory")
	} else if err != nil {
		return err
	}
	t.dirs[name] = true
	return nil
}

// clear prepares the place of a new file or link: its directory, and no earlier file.
func (t *target) clear(name string) error {
	if name == "." || t.dirs[name] {
		return refuse(name, "is a directory and a file or link")
	}
	if err := t.dir(path.Dir(name)); err != nil {
		return err
	}
	delete(t.links, name)
	if err := t.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return t.count()
}

// file makes a file with the content of a member.
func (t *target) file(member string, mode fs.FileMode, content io.Reader) error {
	name, err := t.place(member)
	if err == nil {
		err = t.clear(name)
	}
	if err != nil {
		return err
	}
	to, err := t.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	if _, err = io.Copy(to, &limited{t, content}); err == nil {
		err = to.Chmod(0o444 | mode&0o111)
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("member %q: %w", member, err)
	}
	return nil
}

// limited reads at most as many bytes as the directory may still get.
type limited struct {
	t *target
	r io.Reader
}

func (l *limited) Read(p []byte) (int, error) {
	if err := context.Cause(l.t.ctx); err != nil {
		return 0, err
	}
	n, err := l.r.Read(p)
	if l.t.left.Bytes -= int64(n); l.t.left.Bytes < 0 {
		return 0, fmt.Errorf("%w: its content has more than %d bytes", ErrRefused, l.t.limits.Bytes)
	}
	return n, err
}

// link notes a symbolic link. Its text may have ".." only at its beginning: it begins in a real directory, so these
// lead to directories above that one, and each name after them leads to an entry of the archive.
func (t *target) link(member, text string) error {
	name, err := t.place(member)
	if err != nil {
		return err
	}
	up, down := path.Dir(name), text
	for down == ".." || strings.HasPrefix(down, "../") || strings.HasPrefix(down, "./") {
		first, rest, _ := strings.Cut(down, "/")
		if first == ".." && up == "." {
			return refuse(member, "is a link to %q, which leads out of the directory", text)
		}
		up, down = path.Join(up, first), strings.TrimLeft(rest, "/")
	}
	switch {
	case text == "" || len(text) > maxName || strings.ContainsRune(text, 0):
		return refuse(member, "is a link to nothing, to a name of more than %d bytes, or to one with a zero byte", maxName)
	case path.IsAbs(text):
		return refuse(member, "is a link to the absolute name %q", text)
	case slices.Contains(strings.Split(down, "/"), ".."):
		return refuse(member, "is a link to %q, which has .. after another name", text)
	}
	if err := t.clear(name); err != nil {
		return err
	}
	t.links[name] = text
	return nil
}

// hardLink makes another name of an earlier member.
func (t *target) hardLink(member, earlier string) error {
	from, err := t.place(earlier)
	if err != nil {
		return fmt.Errorf("hard link %q: %w", member, err)
	}
	if text, ok := t.links[from]; ok {
		return t.link(member, text)
	}
	name, err := t.place(member)
	if err != nil {
		return err
	}
	if info, err := t.root.Lstat(from); err != nil || !info.Mode().IsRegular() {
		return refuse(member, "is a hard link to %q, which is not a file before it in the archive", earlier)
	}
	if name == from {
		return nil
	}
	if err := t.clear(name); err != nil {
		return err
	}
	return t.root.Link(from, name)
}

// makeLinks makes the symbolic links.
func (t *target) makeLinks() error {
	for _, name := range slices.Sorted(maps.Keys(t.links)) {
		if err := t.root.Symlink(t.links[name], name); err != nil {
			return fmt.Errorf("member %q: %w", name, err)
		}
	}
	return nil
}
