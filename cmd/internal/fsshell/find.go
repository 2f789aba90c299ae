package fsshell

import (
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
)

// primary is one expression of -find: a test, or an action, which is always true.
type primary func(p place) bool

// search is what -find does with each path: its primaries in order, until one is false.
type search struct {
	*call
	primaries []primary
	acts      bool // one of them prints
}

// find prints the paths below directories for which an expression is true.
func (r *call) find(args []string) error {
	paths, expression := args, []string(nil)
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") {
			paths, expression = args[:i], args[i:]
			break
		}
	}
	if len(paths) == 0 {
		paths = []string{"."}
	}
	s := &search{call: r}
	if err := s.parse(expression); err != nil {
		return err
	}
	if !s.acts {
		s.primaries = append(s.primaries, s.print("\n"))
	}
	r.flag["R"] = true
	return r.each(paths, r.below(s.apply))
}

// parse parses an expression. As in Hadoop, what follows a closing parenthesis is left out.
func (s *search) parse(args []string) error {
	joining := true // no primary comes before
	for i := 0; i < len(args); i++ {
		switch word := args[i]; word {
		case "-name", "-iname":
			if i++; i == len(args) {
				return usagef("%s needs a pattern", word)
			}
			test, err := named(args[i], word == "-iname")
			if err != nil {
				return usagef("%s %s: %v", word, args[i], err)
			}
			s.primaries = append(s.primaries, test)
		case "-print":
			s.acts, s.primaries = true, append(s.primaries, s.print("\n"))
		case "-print0":
			s.acts, s.primaries = true, append(s.primaries, s.print("\x00"))
		case "-a", "-and":
			if joining || i+1 == len(args) {
				return usagef("%s needs an expression on both sides", word)
			}
			joining = true
			continue
		case ")":
			return nil
		default:
			return worded("Unexpected argument: %s", word)
		}
		joining = false
	}
	return nil
}

// named returns a test of the last element of a path.
func named(pattern string, anyCase bool) (primary, error) {
	fold := func(text string) string { return text }
	if anyCase {
		fold = strings.ToLower
	}
	match, err := runtime.MatchName(fold(pattern))
	return func(p place) bool { return match(fold(dfs.Base(p.url))) }, err
}

func (s *search) print(end string) primary {
	return func(p place) bool {
		s.out.WriteString(p.text + end)
		return true
	}
}

// apply applies the expression to a path.
func (s *search) apply(p place) error {
	for _, is := range s.primaries {
		if !is(p) {
			break
		}
	}
	return nil
}
