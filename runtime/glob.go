package runtime

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quernmr/quern/dfs"
)

// Glob patterns work as in Hadoop's FileSystem.globStatus. * and ? match within one name;
// [abc], [a-c], [!a] and [^a] match one character; {a,b} matches either; \ escapes the next
// character. A pattern that Hadoop treats differently from its documentation is refused.
// {a|b} is Quern's own: it is an error if files match both a and b.

// maxAlternatives limits the alternatives from all braces of a path.
const maxAlternatives = 4096

// special has the characters that make a path a pattern. With the characters in wild, a
// pattern can match several names.
const (
	special = wild + `\`
	wild    = `*?[{`
)

// Glob returns the names that match a pattern, sorted, and hidden ones too. If two alternatives with slashes match
// a name, it is there twice, as in Hadoop.
func Glob(f dfs.FS, pattern string) ([]dfs.Info, error) {
	matched, err := expand(pattern, func(pattern string) ([]dfs.Info, error) { return glob(f, pattern) })
	slices.SortStableFunc(matched, func(a, b dfs.Info) int { return strings.Compare(a.Name, b.Name) })
	return matched, err
}

// IsPattern reports whether a path has characters that make it a pattern.
func IsPattern(name string) bool { return strings.ContainsAny(name, special) }

// hidden reports whether directory listings and patterns skip a file.
func hidden(name string) bool {
	base := dfs.Base(name)
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// expand expands the braces that contain slashes or bars, and calls match for each
// alternative, in order. As in Hadoop, a file is found twice if two alternatives with
// slashes match it.
func expand(pattern string, match func(pattern string) ([]dfs.Info, error)) ([]dfs.Info, error) {
	e := &expansion{pattern: pattern, match: match}
	return e.expand(pattern)
}

type expansion struct {
	pattern string // before expansion
	match   func(pattern string) ([]dfs.Info, error)
	matched int // calls of match
}

func (e *expansion) expand(pattern string) (found []dfs.Info, err error) {
	open, close, separators := braces(pattern)
	switch {
	case open < 0 && e.matched == maxAlternatives:
		return nil, e.errorf("more than %d alternatives", maxAlternatives)
	case open < 0:
		e.matched++
		return e.match(pattern)
	case close < 0:
		return nil, e.errorf("{ without }")
	}
	bar := func(i int) bool { return pattern[i] == '|' }
	exclusive := slices.ContainsFunc(separators, bar)
	slash := strings.Contains(pattern[open:close], "/")
	switch {
	case exclusive && slices.ContainsFunc(separators, func(i int) bool { return !bar(i) }):
		return nil, e.errorf("both , and | divide %s", pattern[open:close+1])
	case !exclusive && slash && strings.Contains(pattern[open:close], `\`):
		return nil, e.errorf(`Hadoop drops a \ within braces that hold a /; give the alternatives as paths of their own`)
	}
	seen := make(map[string]bool)
	from := open + 1
	for _, to := range append(separators, close) {
		more, err := e.expand(pattern[:open] + pattern[from:to] + pattern[close+1:])
		if err != nil {
			return nil, err
		}
		if exclusive && len(found) > 0 && len(more) > 0 {
			return nil, e.errorf("both %s and %s exist, but only one may be there", found[0].Name, more[0].Name)
		}
		for _, info := range more {
			if slash || !seen[info.Name] {
				found = append(found, info)
			}
			seen[info.Name] = true
		}
		from = to + 1
	}
	return found, nil
}

func (e *expansion) errorf(format string, args ...any) error {
	return fmt.Errorf("%w: pattern %q: %s", ErrInput, e.pattern, fmt.Sprintf(format, args...))
}

// braces finds the first outer pair of braces that contains a slash or bar, and the commas
// and bars between its alternatives. A missing brace has the index -1.
func braces(pattern string) (open, close int, separators []int) {
	open, depth, class, found := -1, 0, false, false
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
				open, separators = i, nil
			}
			depth++
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				if found {
					return open, i, separators
				}
				open = -1
			}
		case (c == ',' || c == '|') && depth == 1:
			separators = append(separators, i)
			found = found || c == '|'
		case (c == '/' || c == '|') && depth > 0:
			found = true
		}
	}
	return open, -1, nil
}

// glob lists the matches of a pattern without slashes in braces.
func glob(f dfs.FS, pattern string) ([]dfs.Info, error) {
	scheme, rest, _ := strings.Cut(pattern, "://")
	authority, p, _ := strings.Cut(rest, "/")
	elements := strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
	matched := []dfs.Info{{Name: scheme + "://" + authority + "/", Dir: true}}
	for i, element := range elements {
		find, err := finder(f, element, i == len(elements)-1)
		if err != nil {
			return nil, fmt.Errorf("%w: pattern %q: %w", ErrInput, pattern, err)
		}
		var next []dfs.Info
		for _, dir := range matched {
			if !dir.Dir {
				continue
			}
			infos, err := find(dir.Name)
			if err != nil && !missing(err) {
				return nil, err
			}
			next = append(next, infos...)
		}
		matched = next
	}
	return matched, nil
}

// isWild reports whether a pattern may match several names.
func isWild(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '\\':
			i++
		case strings.IndexByte(wild, pattern[i]) >= 0:
			return true
		}
	}
	return false
}

// finder returns a function that finds the matches of a pattern's element in a directory.
func finder(f dfs.FS, element string, last bool) (func(dir string) ([]dfs.Info, error), error) {
	if !isWild(element) {
		name, err := unescape(element)
		return func(dir string) ([]dfs.Info, error) {
			if !last {
				return []dfs.Info{{Name: dfs.Join(dir, name), Dir: true}}, nil
			}
			info, err := f.Stat(dfs.Join(dir, name))
			if err != nil {
				return nil, err
			}
			return []dfs.Info{info}, nil
		}, err
	}
	re, err := translate(element)
	return func(dir string) ([]dfs.Info, error) {
		infos, err := f.List(dir)
		return slices.DeleteFunc(infos, func(i dfs.Info) bool { return !re.MatchString(dfs.Base(i.Name)) }), err
	}, err
}

var errBackslash = errors.New(`a \ at the end`)

// unescape removes the backslashes from an element without wild characters.
func unescape(element string) (string, error) {
	var name strings.Builder
	for i := 0; i < len(element); i++ {
		if element[i] == '\\' {
			if i++; i == len(element) {
				return "", errBackslash
			}
		}
		name.WriteByte(element[i])
	}
	return name.String(), nil
}

// translate converts an element of a pattern to a regular expression.
func translate(element string) (*regexp.Regexp, error) {
	t := translation{rest: element}
	for t.rest != "" {
		if err := t.next(); err != nil {
			return nil, err
		}
	}
	if t.depth > 0 {
		return nil, errors.New("{ without }")
	}
	return regexp.Compile(`(?s)\A(?:` + t.re.String() + `)\z`)
}

// MatchName returns a function that reports whether a name matches a pattern without slashes.
func MatchName(pattern string) (func(name string) bool, error) {
	re, err := translate(pattern)
	if err != nil {
		return nil, err
	}
	return re.MatchString, nil
}

type translation struct {
	re    strings.Builder
	rest  string // of the element
	depth int    // of braces
}

// put appends text to the result and skips a number of bytes of the element.
func (t *translation) put(bytes int, text string) {
	t.re.WriteString(text)
	t.rest = t.rest[bytes:]
}

// next translates one class or character.
func (t *translation) next() error {
	switch c := t.rest[0]; {
	case c == '\\':
		return t.escaped()
	case c == '[':
		return t.class()
	case c == '*':
		t.put(1, ".*")
	case c == '?':
		t.put(1, ".")
	case c == '{':
		t.put(1, "(?:")
		t.depth++
	case c == '}' && t.depth > 0:
		t.put(1, ")")
		t.depth--
	case c == ',' && t.depth > 0:
		t.put(1, "|")
	default:
		t.put(1, quoted(t.rest[:1]))
	}
	return nil
}

// escaped translates a \ and the character after it.
func (t *translation) escaped() error {
	if len(t.rest) == 1 {
		return errBackslash
	}
	if c := t.rest[1]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
		return fmt.Errorf(`to Hadoop, \%c does not mean %c`, c, c)
	}
	t.put(2, quoted(t.rest[1:2]))
	return nil
}

// class translates a class from [ to ]. A ] directly after the [ is a member of the class.
func (t *translation) class() error {
	t.put(1, "[")
	if strings.HasPrefix(t.rest, "!") || strings.HasPrefix(t.rest, "^") {
		t.put(1, "^")
	}
	for first := true; t.rest != ""; first = false {
		switch c := t.rest[0]; {
		case c == '\\':
			if err := t.escaped(); err != nil {
				return err
			}
		case c == ']' && !first:
			t.put(1, "]")
			return nil
		case strings.IndexByte(special, c) >= 0 || c == ',' && t.depth > 0:
			return fmt.Errorf(`within [ ], write \%c: to Hadoop, %c does not mean itself there`, c, c)
		case c == '-':
			t.put(1, "-")
		default:
			t.put(1, quoted(t.rest[:1]))
		}
	}
	return errors.New("[ without ]")
}

// quoted escapes a byte for a regular expression, also for use inside a class.
func quoted(c string) string {
	if c == "-" {
		return `\-`
	}
	return regexp.QuoteMeta(c)
}
