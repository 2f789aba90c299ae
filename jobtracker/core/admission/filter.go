package admission

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// Filter selects jobs of a list. The zero Filter selects all.
type Filter struct {
	States []wire.State // one of them; empty: any
	Owner  string
	Pool   string
	Name   string // each * stands for any text; empty: any name
	Since  int64  // submitted then or later, in Unix milliseconds; 0: at any time
	Flow   wire.FlowID
}

// IsZero reports whether the filter selects all jobs.
func (f *Filter) IsZero() bool {
	return len(f.States) == 0 && f.Owner == "" && f.Pool == "" && f.Name == "" && f.Since == 0 && f.Flow.IsZero()
}

// Selects reports whether the filter selects a job that was submitted at a time. Of the status it
// reads only state, owner, pool, name and flow. If the caller may not see the job, its name matches no
// filter: else a caller could guess it.
func (f *Filter) Selects(s *wire.JobStatus, submitted int64, visible bool) bool {
	switch {
	case len(f.States) > 0 && !slices.Contains(f.States, s.State),
		f.Owner != "" && f.Owner != s.Owner,
		f.Pool != "" && f.Pool != cmp.Or(s.Settings.Pool, wire.DefaultPool),
		f.Since > submitted,
		!f.Flow.IsZero() && f.Flow != s.Flow:
		return false
	}
	return f.Name == "" || visible && MatchesName(f.Name, s.Name)
}

// MatchesName reports whether a pattern matches a whole name. Each * of it stands for any text, also
// none; all other characters stand for themselves.
func MatchesName(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	for ok {
		part, more, star := strings.Cut(rest, "*")
		if !star { // the last part is at the end
			return strings.HasSuffix(name, rest)
		}
		// The first place is as good as any later one: the stars after it match what follows.
		var at int
		if at = strings.Index(name, part); at < 0 {
			return false
		}
		name, rest = name[at+len(part):], more
	}
	return false
}
