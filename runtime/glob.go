package runtime

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/quernmr/quern/dfs"
)

// maxAlternatives bounds what the braces of one path may multiply to.
const maxAlternatives = 4096

// hasGlob says whether a path is a pattern: *, ?, [a-z], {a,b}, {a|b} and \ before any
// of them.
func hasGlob(name string) bool { return strings.ContainsAny(name, `*?[{\`) }

// hidden says whether a file is left out of directories and patterns.
func hidden(name string) bool {
	base := dfs.Base(name)
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// expand gives what match finds for each way to write out a pattern's braces, in
// order and each name once. Both of {a,b} may match, but only one of {a|b}; one pair of
// braces has either commas or bars. What is between braces may hold slashes and braces.
func expand(pattern string, match func(pattern string) ([]dfs.Info, error)) ([]dfs.Info, error) {
	e := &expansion{pattern: pattern, match: match}
	return e.of(pattern)
}

type expansion struct {
	pattern string // the whole
	match   func(pattern string) ([]dfs.Info, error)
	matched int // how often
}

func (e *expansion) of(pattern string) (found []dfs.Info, err error) {
	open, close, between := firstBraces(pattern)
	switch {
	case open < 0 && e.matched == maxAlternatives:
		return nil, e.wrong("more than %d alternatives", maxAlternatives)
	case open < 0:
		e.matched++
		return e.match(pattern)
	case close < 0:
		return nil, e.wrong("{ without }")
	}
	bar := func(i int) bool { return pattern[i] == '|' }
	either := slices.ContainsFunc(between, bar)
	if either && slices.ContainsFunc(between, func(i int) bool { return !bar(i) }) {
		return nil, e.wrong("both , and | divide %s", pattern[open:close+1])
	}
	seen := make(map[string]bool)
	from := open + 1
	for _, to := range append(between, close) {
		more, err := e.of(pattern[:open] + pattern[from:to] + pattern[close+1:])
		if err != nil {
			return nil, err
		}
		if either && len(found) > 0 && len(more) > 0 {
			return nil, e.wrong("both %s and %s are there, and only one may be", found[0].Name, more[0].Name)
		}
		for _, info := range more {
			if !seen[info.Name] {
				found = append(found, info)
			}
			seen[info.Name] = true
		}
		from = to + 1
	}
	return found, nil
}

func (e *expansion) wrong(format string, args ...any) error {
	return fmt.Errorf("%w: pattern %q: %s", ErrInput, e.pattern, fmt.Sprintf(format, args...))
}

// firstBraces finds the first { of a pattern, its } and the commas and bars between
// that belong to them; -1 where there is none.
func firstBraces(pattern string) (open, close int, between []int) {
	open, depth, class := -1, 0, false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			if depth == 0 {
				open = i
			}
			depth++
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, i, between
			}
		case (c == ',' || c == '|') && depth == 1:
			between = append(between, i)
		}
	}
	return open, -1, nil
}

// glob lists what a pattern without braces matches, sorted by name. Hidden names
// match only where the pattern's element begins with the hiding character.
func glob(f dfs.FS, pattern string) ([]dfs.Info, error) {
	scheme, rest, _ := strings.Cut(pattern, "://")
	authority, p, _ := strings.Cut(rest, "/")
	elements := strings.Split(p, "/")
	matched := []dfs.Info{{Name: scheme + "://" + authority + "/", Dir: true}}
	for i, element := range elements {
		last := i == len(elements)-1
		var next []dfs.Info
		for _, dir := range matched {
			if !dir.Dir {
				continue
			}
			if !hasGlob(element) && !last {
				next = append(next, dfs.Info{Name: dfs.Join(dir.Name, element), Dir: true})
				continue
			}
			infos, err := globIn(f, dir.Name, element)
			if err != nil {
				return nil, err
			}
			next = append(next, infos...)
		}
		matched = next
	}
	return matched, nil
}

// globIn matches one element of a pattern in one directory; one that is missing
// matches nothing.
func globIn(f dfs.FS, dir, element string) ([]dfs.Info, error) {
	if !hasGlob(element) {
		info, err := f.Stat(dfs.Join(dir, element))
		if missing(err) {
			return nil, nil
		}
		return []dfs.Info{info}, err
	}
	infos, err := f.List(dir)
	if missing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var matched []dfs.Info
	for _, info := range infos {
		base := dfs.Base(info.Name)
		if hidden(base) && base[0] != element[0] {
			continue
		}
		ok, err := path.Match(element, base)
		if err != nil {
			return nil, fmt.Errorf("pattern %q in %s: %w", element, dir, err)
		}
		if ok {
			matched = append(matched, info)
		}
	}
	return matched, nil
}
