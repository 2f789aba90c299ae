package fsshell

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/quernmr/quern/cmd/internal/interrupt"
	"github.com/quernmr/quern/dfs"
)

// transfer is a command from sources to a target.
type transfer struct {
	*call
	file      func(from, to place) error // acts on a file, or with whole on any path
	whole     bool
	overwrite bool
	keep      string // t for times, o for the owner, p for permissions
	direct    bool   // without a temporary file
	remove    bool   // each source, once it is copied
}

// transfer returns the transfer of a command that copies.
func (r *call) transfer() *transfer {
	t := &transfer{call: r, overwrite: r.flag["f"], keep: r.value["p"], direct: r.flag["d"], remove: r.flag["remove"]}
	if r.flag["p"] {
		t.keep = "top"
	}
	t.file = t.copyFile
	return t
}

// target returns the last argument's path, which a pattern may name.
func (r *call) target(arg string) (place, error) {
	all, err := r.expand(arg)
	switch {
	case err != nil:
		return place{}, err
	case len(all) > 1:
		return place{}, &pathError{arg, "Too many matches"}
	}
	return all[0], nil
}

func (r *call) put(args []string) error {
	sources, last := args, "."
	if len(args) > 1 {
		sources, last = args[:len(args)-1], args[len(args)-1]
	}
	to, err := r.target(last)
	if err != nil {
		return err
	}
	t := r.transfer()
	if len(sources) == 1 && sources[0] == "-" {
		if to.Attributes != nil && to.Dir {
			if to, err = r.inside(to, "-"); err != nil {
				return err
			}
		}
		return t.write(r.Stdin, to)
	}
	var from []place
	for _, arg := range sources {
		p, err := r.local(arg)
		if err != nil {
			r.fail(err)
			continue
		}
		from = append(from, p)
	}
	return t.run(from, to)
}

// moveFromLocal copies as -put does, and removes the sources.
func (r *call) moveFromLocal(args []string) error {
	r.flag["remove"] = true
	return r.put(args)
}

func (r *call) get(args []string) error {
	sources, last := args, "."
	if len(args) > 1 {
		sources, last = args[:len(args)-1], args[len(args)-1]
	}
	to, err := r.local(last)
	if err != nil {
		return err
	}
	return r.transfer().run(r.expandAll(sources), to)
}

func (r *call) cp(args []string) error {
	to, err := r.target(args[len(args)-1])
	if err != nil {
		return err
	}
	t := r.transfer()
	if strings.ContainsAny(t.keep, "ax") {
		return usagef("%s does not copy ACLs and extended attributes, which the option -p%s of Hadoop asks for: use -p", r.Program, t.keep)
	}
	return t.run(r.expandAll(args[:len(args)-1]), to)
}

func (r *call) mv(args []string) error {
	to, err := r.target(args[len(args)-1])
	if err != nil {
		return err
	}
	t := &transfer{call: r, whole: true, file: func(from, to place) error {
		if fileSystem(from.url) != fileSystem(to.url) {
			return &pathError{from.text, "Does not match target filesystem"}
		}
		if to.Attributes != nil {
			return &pathError{to.text, exists}
		}
		return r.rename(from, to.url)
	}}
	return t.run(r.expandAll(args[:len(args)-1]), to)
}

// rename renames a path within its file system, which may have several mounts.
func (r *call) rename(p place, to string) error {
	if local, ok := p.files.(interface {
		Move(ctx context.Context, from, to string) error
	}); ok {
		return local.Move(r.ctx, p.url, to)
	}
	if p.Dir {
		return p.files.RenameDir(p.url, to)
	}
	return p.files.RenameFile(p.url, to)
}

// run checks the target as Hadoop does, and transfers each source.
func (t *transfer) run(sources []place, to place) error {
	switch {
	case len(sources) > 1 && to.Attributes == nil:
		return &pathError{to.text, notFound}
	case len(sources) > 1 && !to.Dir:
		return &pathError{to.text, notDirectory}
	case len(sources) > 1:
	case to.Attributes != nil && !to.Dir && !t.overwrite:
		return &pathError{to.text, exists}
	case to.Attributes == nil:
		if found, err := t.parentExists(to); err != nil {
			return err
		} else if !found {
			return &pathError{to.text, notFound + ": `" + qualified(to.url) + "'"}
		}
	}
	for _, from := range sources {
		err := t.must(from, func(from place) error { return t.argument(from, to) })
		if err != nil {
			t.fail(err)
		}
	}
	return nil
}

// parentExists reports whether the directory exists that a new path shall be in. With a slash at its end, the path
// itself must exist.
func (t *transfer) parentExists(p place) (bool, error) {
	dir := dfs.Dir(p.url)
	if strings.HasSuffix(p.text, "/") || dfs.Base(p.text) == "." || dfs.Base(p.text) == ".." {
		dir = p.url
	}
	parent, err := t.at("", dir)
	return parent.Attributes != nil, err
}

// inside returns the place of a name in a directory.
func (r *call) inside(dir place, base string) (place, error) {
	text, url := dir.child(base)
	return r.at(text, url)
}

func (t *transfer) argument(from, to place) error {
	target := to
	var err error
	if to.Attributes != nil && to.Dir {
		if target, err = t.inside(to, dfs.Base(from.url)); err != nil {
			return err
		}
	}
	if from.Dir {
		switch {
		case target.url == from.url:
			return identical(from, target)
		case strings.HasPrefix(target.url, strings.TrimSuffix(from.url, "/")+"/"):
			return worded("`%s' to `%s': is a subdirectory of itself", from.text, target.text)
		}
	}
	return t.move(from, target)
}

func identical(from, to place) error {
	return worded("`%s' to `%s': are identical", from.text, qualified(to.url))
}

// move transfers a path to its target, and for copies all below it.
func (t *transfer) move(from, to place) error {
	if t.ctx.Err() != nil {
		return t.ctx.Err()
	}
	if t.whole || !from.Dir {
		return t.file(from, to)
	}
	switch {
	case to.Attributes != nil && !to.Dir:
		return &pathError{to.text, notDirectory}
	case to.Attributes != nil && t.remove: // a move does not merge directories
		return &pathError{to.text, exists}
	case to.Attributes == nil:
		if err := to.files.MkdirAll(to.url); err != nil {
			return err
		}
	}
	all, err := from.children()
	if err != nil {
		return err
	}
	for _, child := range all {
		target, err := t.inside(to, dfs.Base(child.url))
		if err == nil {
			err = t.move(child, target)
		}
		if err != nil {
			t.fail(err)
		}
	}
	return t.finish(from, to)
}

// finish gives a copy the attributes of its source, which a move then removes.
func (t *transfer) finish(from, to place) error {
	if err := t.keepAttributes(from, to); err != nil || !t.remove {
		return err
	}
	return from.files.Remove(from.url)
}

func (t *transfer) copyFile(from, to place) error {
	if t.overwrite && to.url == from.url {
		return identical(from, to)
	}
	return t.reading(func(from place, in dfs.File) error {
		if err := t.write(in, to); err != nil {
			return err
		}
		return t.finish(from, to)
	})(from)
}

// write makes a file: under a temporary name first, as Hadoop does, so that readers see only whole ones.
func (t *transfer) write(from io.Reader, to place) error {
	if to.Attributes != nil && (to.Dir || !t.overwrite) {
		return &pathError{to.text, exists}
	}
	name := to.url + "._COPYING_"
	if t.direct {
		name = to.url
	}
	if err := to.files.Remove(name); err != nil && !absent(err) {
		return err // left by an earlier copy, or the file that is overwritten
	}
	if err := fill(to.files, name, interrupt.Reader{Context: t.ctx, Reader: from}); err != nil || t.direct {
		return err
	}
	if err := to.files.Remove(to.url); err != nil && !absent(err) {
		return err
	}
	err := to.files.RenameFile(name, to.url)
	if err == nil {
		return to.files.SyncDir(dfs.Dir(to.url))
	}
	return errors.Join(err, to.files.Remove(name))
}

// fill makes a file, or leaves none.
func fill(f dfs.FS, name string, from io.Reader) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, from); err != nil {
		err = errors.Join(err, w.Abort())
		if removed := f.Remove(name); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
		return err
	}
	return w.Close()
}

// keepAttributes gives a copy the times, owner and permissions of its source.
func (t *transfer) keepAttributes(from, to place) error {
	if t.keep == "" {
		return nil
	}
	now, err := to.files.Attributes(to.url)
	if err != nil {
		return err
	}
	if strings.Contains(t.keep, "o") && (now.Owner != from.Owner || now.Group != from.Group) {
		if err := to.files.SetOwner(to.url, from.Owner, from.Group); err != nil {
			return err
		}
	}
	if strings.Contains(t.keep, "p") {
		if err := to.files.SetMode(to.url, from.Mode); err != nil {
			return err
		}
	}
	if !strings.Contains(t.keep, "t") {
		return nil
	}
	return to.files.SetTimes(to.url, from.Modified, from.Accessed)
}

// getMerge joins files, and those of directories, in one local file.
func (r *call) getMerge(args []string) error {
	to, err := r.local(args[len(args)-1])
	switch {
	case err != nil:
		return err
	case to.Attributes != nil && to.Dir:
		return &pathError{to.text, isDirectory}
	}
	var all []place
	for _, p := range r.expandAll(args[:len(args)-1]) {
		err := r.must(p, func(p place) (err error) {
			files := []place{p}
			if p.Dir {
				files, err = p.children()
			}
			for _, f := range files {
				if !f.Dir {
					all = append(all, f)
				}
			}
			return err
		})
		if err != nil {
			r.fail(err)
		}
	}
	if r.failed {
		return nil
	}
	for _, f := range all {
		if f.url == to.url {
			return identical(f, to)
		}
	}
	t := r.transfer()
	t.overwrite, t.direct = true, true
	return t.write(&merged{files: all, newline: r.flag["nl"], skipEmpty: r.flag["skip-empty-file"]}, to)
}

// merged reads files one after the other.
type merged struct {
	files              []place
	newline, skipEmpty bool
	current            io.Reader
	close              func() error
}

func (m *merged) Read(p []byte) (int, error) {
	for {
		if m.current == nil {
			if len(m.files) == 0 {
				return 0, io.EOF
			}
			f, err := m.files[0].open()
			if err != nil {
				return 0, err
			}
			m.current, m.close = f, f.Close
			if m.newline && !(m.skipEmpty && f.Info().Size == 0) {
				m.current = io.MultiReader(f, strings.NewReader("\n"))
			}
			m.files = m.files[1:]
		}
		n, err := m.current.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		m.current = nil
		if err := m.close(); err != nil || n > 0 {
			return n, err
		}
	}
}
