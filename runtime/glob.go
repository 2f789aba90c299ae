package runtime

import (
	"fmt"
	"path"
	"strings"

	"github.com/quernmr/quern/dfs"
)

// maxAlternatives bounds what the braces of one path may multiply to.
const maxAlternatives = 4096

// hasGlob says whether a path is a pattern: *, ?, [a-z], {a,b} and \ before any of them.
func hasGlob(name string) bool { return strings.ContainsAny(name, `*?[{\`) }

// hidden says whether a file is left out of directories and patterns.
func hidden(name string) bool {
	base := dfs.Base(name)
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// expandBraces writes out the alternatives of a pattern, in order. A comma list
// may hold slashes and braces.
func expandBraces(pattern string) ([]string, error) {
	open, close, commas := firstBraces(pattern)
	if open < 0 {
		return []string{pattern}, nil
	}
	if close < 0 {
		return nil, fmt.Errorf("pattern %q: { without }", pattern)
	}
	var all []string
	from := open + 1
	for _, to := range append(commas, close) {
		more, err := expandBraces(pattern[:open] + pattern[from:to] + pattern[close+1:])
		if err != nil {
			return nil, err
		}
		if all = append(all, more...); len(all) > maxAlternatives {
			return nil, fmt.Errorf("pattern %q: more than %d alternatives", pattern, maxAlternatives)
		}
		from = to + 1
	}
	return all, nil
}

// firstBraces finds the first { of a pattern, its } and the commas between that
// belong to them; -1 where there is none.
func firstBraces(pattern string) (open, close int, commas []int) {
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
				return open, i, commas
			}
		case c == ',' && depth == 1:
			commas = append(commas, i)
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
