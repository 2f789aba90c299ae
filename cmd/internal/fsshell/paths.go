package fsshell

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
)

// place is a path of the command line, or below one.
type place struct {
	text            string // as shown
	url             string
	files           dfs.Attributed
	*dfs.Attributes // nil: it does not exist
}

// cut splits a URL after its authority. The path begins with a slash.
func cut(url string) (fileSystem, path string) {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, below, _ := strings.Cut(rest, "/")
	return scheme + "://" + authority, "/" + below
}

func fileSystem(url string) string {
	f, _ := cut(url)
	return f
}

// url returns the URL of an argument.
func (r *call) url(arg string) (string, error) {
	scheme, _, err := dfs.Scheme(arg)
	switch {
	case err != nil:
		return "", err
	case scheme == "" && r.Default != "" && strings.HasPrefix(arg, "/"):
		arg = fileSystem(r.Default) + arg
	case scheme == "" && r.Default != "":
		home, err := r.home()
		if err != nil {
			return "", err
		}
		arg = dfs.Join(home, arg)
	}
	return dfs.Clean(arg)
}

// homely is a file system with home directories.
type homely interface {
	Home(name string) (string, error)
}

// home returns the URL of the directory that relative paths are in.
func (r *call) home() (string, error) {
	if r.Default == "" {
		return dfs.Clean(".")
	}
	files, err := dfs.AttributedOf(r.Files, r.Default)
	if err != nil {
		return "", err
	}
	if h, ok := files.(homely); ok {
		return h.Home(r.Default)
	}
	return dfs.Clean(".")
}

// at looks a path up by its URL.
func (r *call) at(text, url string) (place, error) {
	p := place{text: text, url: url}
	var err error
	if p.files, err = dfs.AttributedOf(r.Files, url); err != nil {
		return p, err
	}
	a, err := p.files.Attributes(url)
	switch {
	case err == nil:
		p.Attributes = &a
	case !absent(err):
		return p, err
	}
	return p, nil
}

// given looks up a path that is no pattern, and shows it as given.
func (r *call) given(arg string) (place, error) {
	url, err := r.url(arg)
	if err != nil {
		return place{text: arg}, err
	}
	return r.at(arg, url)
}

// local looks up a path in the local file system.
func (r *call) local(arg string) (place, error) {
	url, err := dfs.Clean(arg)
	if err != nil {
		return place{text: arg}, err
	}
	if !strings.HasPrefix(url, "file:") {
		return place{text: arg}, usagef("%s is not a path of the local file system", arg)
	}
	return r.at(arg, url)
}

// listed is a file system that remembers the attributes of what it has listed.
type listed struct {
	dfs.Attributed
	seen map[string]dfs.Attributes
}

func (l listed) List(name string) ([]dfs.Info, error) {
	all, err := l.ListAttributes(name)
	infos := make([]dfs.Info, len(all))
	for i, a := range all {
		infos[i], l.seen[a.Name] = a.Info, a
	}
	return infos, err
}

func (l listed) Stat(name string) (dfs.Info, error) {
	a, err := l.Attributes(name)
	if err == nil {
		l.seen[a.Name] = a
	}
	return a.Info, err
}

// expand returns the paths that an argument names: those that match a pattern, or itself, which may not exist.
func (r *call) expand(arg string) ([]place, error) {
	url, err := r.url(arg)
	if err != nil {
		return nil, err
	}
	if !runtime.IsPattern(arg) {
		p, err := r.at(arg, url)
		if p.Attributes != nil {
			p.text = r.shown(arg, url)
		}
		return []place{p}, err
	}
	files, err := dfs.AttributedOf(r.Files, url)
	if err != nil {
		return nil, err
	}
	from := listed{files, make(map[string]dfs.Attributes)}
	found, err := runtime.Glob(from, url)
	if err != nil {
		return nil, err
	}
	var all []place
	for _, info := range found {
		a := from.seen[info.Name]
		all = append(all, place{r.shown(arg, info.Name), info.Name, files, &a})
	}
	if len(all) == 0 {
		return nil, &pathError{arg, notFound}
	}
	return all, nil
}

// shown returns the form of a URL that an argument has.
func (r *call) shown(arg, url string) string {
	scheme, rest, _ := dfs.Scheme(arg)
	files, below := cut(url)
	_, authority, _ := strings.Cut(files, ":")
	switch {
	case scheme != "" && !strings.HasPrefix(rest, authority+"/"):
		return scheme + "://" + below // the argument has no authority
	case scheme != "":
		return url
	case strings.HasPrefix(arg, "/"):
		return below
	}
	home, err := r.home()
	if err != nil {
		return below
	}
	_, home = cut(home)
	relative, err := filepath.Rel(home, below)
	if err != nil {
		return below
	}
	return filepath.ToSlash(relative)
}

// child returns the text and URL of a name in a directory.
func (p place) child(base string) (text, url string) {
	switch {
	case p.text == ".":
		text = base
	case strings.HasSuffix(p.text, "/"):
		text = p.text + base
	default:
		text = p.text + "/" + base
	}
	return text, dfs.Join(p.url, base)
}

// children lists a directory.
func (p place) children() ([]place, error) {
	all, err := p.files.ListAttributes(p.url)
	if err != nil {
		return nil, err
	}
	list := make([]place, len(all))
	for i := range all {
		text, url := p.child(dfs.Base(all[i].Name))
		list[i] = place{text, url, p.files, &all[i]}
	}
	return list, nil
}

// qualified is a URL as Hadoop's Path prints it: without an empty authority.
func qualified(url string) string {
	if scheme, rest, ok := strings.Cut(url, ":///"); ok {
		return scheme + ":/" + rest
	}
	return url
}

// isRoot reports whether a path is the top of its file system.
func (p place) isRoot() bool {
	_, below := cut(p.url)
	return path.Clean(below) == "/"
}

// expandAll expands the arguments, and reports those that fail.
func (r *call) expandAll(args []string) (all []place) {
	for _, arg := range args {
		found, err := r.expand(arg)
		if err != nil {
			r.fail(err)
			continue
		}
		all = append(all, found...)
	}
	return all
}

// each calls do for each path of the arguments, and reports errors.
func (r *call) each(args []string, do func(p place) error) error {
	return r.eachNew(args, func(p place) error { return r.must(p, do) })
}

// eachNew calls do as each does, but also for paths that do not exist.
func (r *call) eachNew(args []string, do func(p place) error) error {
	for _, p := range r.expandAll(args) {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		err := do(p)
		if usage := (usageError{}); errors.As(err, &usage) {
			return err
		}
		if err != nil {
			r.fail(err)
		}
	}
	return nil
}

// must calls do for a path that exists.
func (r *call) must(p place, do func(p place) error) error {
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if p.Attributes == nil {
		return &pathError{p.text, notFound}
	}
	return do(p)
}
