package wire

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// ErrCounterLimit reports a counter beyond a job's [CounterLimits].
var ErrCounterLimit = errors.New("counter limit exceeded")

// CounterLimits limit the counters of a job and of each of its attempts. Built-in counters do not
// count; their limit is [MaxBuiltInCounters].
type CounterLimits struct{ Counters, Groups, Name, GroupName int }

// CounterProperty is a property that sets a limit: Hadoop's, with Hadoop's default.
type CounterProperty struct {
	Name    string
	Default int
	Max     int // a higher value is refused
}

// The properties of the limits. Even with the highest values, an attempt's counters fit into its
// report (500 KB of 2 MiB). Then a job tracker can still hold the counters of 1,000 ended jobs in
// memory and snapshots.
var (
	CountersMax      = CounterProperty{"mapreduce.job.counters.max", 120, 2000}
	CounterGroupsMax = CounterProperty{"mapreduce.job.counters.groups.max", 50, 200}
	CounterNameMax   = CounterProperty{"mapreduce.job.counters.counter.name.max", 64, 128}
	CounterGroupMax  = CounterProperty{"mapreduce.job.counters.group.name.max", 128, 256}
)

// MaxBuiltInCounters limits a job's counters in Hadoop's and Quern's groups. About 60 are in use.
const MaxBuiltInCounters = 200

// CounterLimitsOf reads the limits from a job's properties. The client has checked the values; if
// one is invalid anyway, the default applies.
func CounterLimitsOf(properties map[string]string) CounterLimits {
	read := func(p CounterProperty) int {
		n, err := strconv.Atoi(properties[p.Name])
		if err != nil || n < 0 || n > p.Max {
			return p.Default
		}
		return n
	}
	return CounterLimits{read(CountersMax), read(CounterGroupsMax), read(CounterNameMax), read(CounterGroupMax)}
}

// BuiltInCounters reports whether a group of counters is Hadoop's or Quern's.
func BuiltInCounters(group string) bool {
	return strings.HasPrefix(group, hadoopPrefix) || group == ReadCounters || group == QuernCounters
}

// bytes limits the bytes of a name, whatever its limit of characters is: the default limit leaves room for all letters.
func (p CounterProperty) bytes() int { return 3 * p.Default }

// CounterNameLength counts the characters of a counter's name as Hadoop does: one beyond U+FFFF counts twice.
func CounterNameLength(name string) (n int) {
	for _, r := range name {
		n += utf16.RuneLen(r)
	}
	return n
}

// Admit returns an error if the limits do not allow a new counter in c. It refuses names that are
// too long. Hadoop cuts them, and so merges counters with a common beginning.
func (l CounterLimits) Admit(c Counters, group, name string) error {
	switch {
	case CounterNameLength(name) > l.Name:
		return l.exceeded(CounterNameMax, l.Name, "the name of counter %s in group %s has %d characters", quote(name), quote(group), CounterNameLength(name))
	case CounterNameLength(group) > l.GroupName:
		return l.exceeded(CounterGroupMax, l.GroupName, "the name of counter group %s has %d characters", quote(group), CounterNameLength(group))
	case len(name) > CounterNameMax.bytes():
		return fmt.Errorf("%w: the name of counter %s in group %s has %d bytes: at most %d", ErrCounterLimit, quote(name), quote(group), len(name), CounterNameMax.bytes())
	case len(group) > CounterGroupMax.bytes():
		return fmt.Errorf("%w: the name of counter group %s has %d bytes: at most %d", ErrCounterLimit, quote(group), len(group), CounterGroupMax.bytes())
	}
	groups, user, builtIn := 0, 0, 0
	for g, names := range c {
		if BuiltInCounters(g) {
			builtIn += len(names)
		} else {
			groups, user = groups+1, user+len(names)
		}
	}
	switch {
	case BuiltInCounters(group):
		if builtIn >= MaxBuiltInCounters {
			return fmt.Errorf("%w: counter %s is one more than the %d that groups like %s may have",
				ErrCounterLimit, quote(name), MaxBuiltInCounters, quote(group))
		}
	case user >= l.Counters:
		return l.exceeded(CountersMax, l.Counters, "counter %s of group %s is one too many", quote(name), quote(group))
	case c[group] == nil && groups >= l.Groups:
		return l.exceeded(CounterGroupsMax, l.Groups, "counter group %s is one too many", quote(group))
	}
	return nil
}

func (l CounterLimits) exceeded(p CounterProperty, limit int, format string, args ...any) error {
	return fmt.Errorf("%w: %s: at most %d; %s can raise it to %d", ErrCounterLimit, fmt.Sprintf(format, args...), limit, p.Name, p.Max)
}

// quote shortens and quotes a name for an error.
func quote(name string) string { return strconv.Quote(Truncate(name, 80)) }

// Merge adds other to c. It adds nothing if [CounterLimits.Admit] refuses one of other's
// counters.
func (l CounterLimits) Merge(c, other Counters) error {
	if !c.hasAll(other) {
		all := make(Counters)
		all.Merge(c)
		for _, group := range slices.Sorted(maps.Keys(other)) {
			for _, name := range slices.Sorted(maps.Keys(other[group])) {
				if _, known := all[group][name]; known {
					continue
				}
				if err := l.Admit(all, group, name); err != nil {
					return err
				}
				all.Add(group, name, 0)
			}
		}
	}
	c.Merge(other)
	return nil
}

// hasAll reports whether c has every counter of other.
func (c Counters) hasAll(other Counters) bool {
	for group, names := range other {
		known := c[group]
		for name := range names {
			if _, ok := known[name]; !ok {
				return false
			}
		}
	}
	return true
}
