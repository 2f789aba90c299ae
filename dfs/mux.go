package dfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// ErrUnknownScheme reports a URL of an unknown file system.
var ErrUnknownScheme = errors.New("unknown file system")

// Mux is an FS that passes calls to the FS of the name's scheme. It must not change after
// creation.
type Mux map[string]FS

// Scheme splits a name as Hadoop does. If the text before the first colon has no slash, it
// is the scheme of a URL, and the path must begin with a slash. Any other name is a local
// path, with an empty scheme.
func Scheme(name string) (scheme, rest string, err error) {
	scheme, rest, colon := strings.Cut(name, ":")
	switch {
	case name == "":
		return "", "", fmt.Errorf("empty path: %w", fs.ErrInvalid)
	case strings.ContainsRune(name, 0):
		return "", "", fmt.Errorf("path %q: %w", name, fs.ErrInvalid)
	case !colon || strings.Contains(scheme, "/"):
		return "", name, nil
	case !schemeName.MatchString(scheme):
		return "", "", fmt.Errorf("path %q: %w: %q is not a URL's scheme; for a local file of this name write ./%s", name, fs.ErrInvalid, scheme, name)
	case !strings.HasPrefix(rest, "/"):
		return "", "", fmt.Errorf("path %q: %w: a URL has a slash after its scheme; for a local file of this name write ./%s", name, fs.ErrInvalid, name)
	}
	return scheme, rest, nil
}

var schemeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)

// Clean converts a name to the common form scheme://authority/path, with an absolute path
// without dots or double slashes. Hadoop's short form scheme:/path has no authority. A name
// without a scheme is a local path, relative to the working directory.
func Clean(name string) (string, error) {
	scheme, rest, err := Scheme(name)
	if err != nil {
		return "", err
	}
	if scheme == "" {
		abs, err := filepath.Abs(name)
		if err != nil {
			return "", fmt.Errorf("path %q: %w", name, err)
		}
		return "file://" + filepath.ToSlash(abs), nil
	}
	authority := ""
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		authority, rest, _ = strings.Cut(after, "/")
	}
	return scheme + "://" + authority + path.Clean("/"+rest), nil
}

// Clean calls the function Clean, and refuses URLs with a scheme that m does not have.
func (m Mux) Clean(name string) (string, error) {
	clean, err := Clean(name)
	if err == nil {
		_, err = m.fsFor(clean)
	}
	return clean, err
}

// Join appends path elements to a cleaned URL.
func Join(name string, elem ...string) string {
	for _, e := range elem {
		name = strings.TrimSuffix(name, "/") + "/" + e
	}
	return name
}

// Base returns the last element of a URL's path.
func Base(name string) string { return path.Base(name) }

// Dir returns a URL without its path's last element.
func Dir(name string) string {
	scheme, rest, _ := strings.Cut(name, "://")
	authority, p, _ := strings.Cut(rest, "/")
	return scheme + "://" + authority + path.Dir("/"+p)
}

func (m Mux) fsFor(name string) (FS, error) {
	scheme, _, err := Scheme(name)
	if err != nil {
		return nil, err
	}
	if f := m[cmp.Or(scheme, "file")]; f != nil {
		return f, nil
	}
	schemes := make([]string, 0, len(m))
	for s := range m {
		schemes = append(schemes, s+"://")
	}
	slices.Sort(schemes)
	return nil, fmt.Errorf("%s: %w %q (known: %s)", name, ErrUnknownScheme, scheme+"://", strings.Join(schemes, ", "))
}

func (m Mux) Open(name string) (File, error) {
	f, err := m.fsFor(name)
	if err != nil {
		return nil, err
	}
	return f.Open(name)
}

func (m Mux) Create(name string) (Writer, error) {
	f, err := m.fsFor(name)
	if err != nil {
		return nil, err
	}
	return f.Create(name)
}

func (m Mux) Mkdir(name string) error {
	return m.do(name, func(f FS) error { return f.Mkdir(name) })
}

func (m Mux) MkdirAll(name string) error {
	return m.do(name, func(f FS) error { return f.MkdirAll(name) })
}

func (m Mux) SyncDir(name string) error {
	return m.do(name, func(f FS) error { return f.SyncDir(name) })
}

func (m Mux) Remove(name string) error {
	return m.do(name, func(f FS) error { return f.Remove(name) })
}

func (m Mux) RemoveAll(name string) error {
	return m.do(name, func(f FS) error { return f.RemoveAll(name) })
}

func (m Mux) RenameFile(from, to string) error {
	return m.do(from, func(f FS) error { return f.RenameFile(from, to) })
}

func (m Mux) RenameDir(from, to string) error {
	return m.do(from, func(f FS) error { return f.RenameDir(from, to) })
}

func (m Mux) do(name string, op func(FS) error) error {
	f, err := m.fsFor(name)
	if err != nil {
		return err
	}
	return op(f)
}

func (m Mux) Stat(name string) (Info, error) {
	f, err := m.fsFor(name)
	if err != nil {
		return Info{}, err
	}
	return f.Stat(name)
}

func (m Mux) List(name string) ([]Info, error) {
	f, err := m.fsFor(name)
	if err != nil {
		return nil, err
	}
	return f.List(name)
}
