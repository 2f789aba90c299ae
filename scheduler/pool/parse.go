package pool

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/wire"
)

// Limits of a file.
const (
	maxPools    = 1000
	maxName     = 200 // bytes
	maxWarnings = 20
	maxAmount   = 1 << 30
)

// SlotMemory is how many MiB of a queue's resources count as a slot, with one vcore: Hadoop's
// default for a container.
const SlotMemory = 1024

// Parse reads a Hadoop fair scheduler's allocation file, of either generation:
//
//	<allocations>
//	  <pool name="research">                    <queue name="research">
//	    <minMaps>10</minMaps>                     <minResources>10240 mb, 10 vcores</minResources>
//	    <minReduces>5</minReduces>
//	    <maxMaps>40</maxMaps>                     <maxResources>40 vcores</maxResources>
//	    <maxReduces>20</maxReduces>
//	    <maxRunningJobs>3</maxRunningJobs>        <maxRunningApps>3</maxRunningApps>
//	    <weight>2.0</weight>                      <weight>2.0</weight>
//	  </pool>                                     <aclSubmitApps>ann,bob</aclSubmitApps>
//	  <poolMaxJobsDefault>9</poolMaxJobsDefault>  </queue>
//	</allocations>                              … <queueMaxAppsDefault>, <queueMaxResourcesDefault>
//
// Resources become slots of each phase: one for each vcore and each [SlotMemory], whichever gives
// fewer. A resource of 0 does not count if the other is above 0. A queue in a queue becomes a
// pool such as "a.b"; names omit root. Everything else, other resources included, has no effect
// and gets a warning. Errors and warnings begin with the file's name, from, and the line.
func Parse(from string, data []byte) (Table, error) {
	r := &reader{Decoder: xml.NewDecoder(bytes.NewReader(data)), from: from, table: Table{From: from}, jobsDefault: Unlimited, maxDefault: Unlimited}
	if err := r.file(); err != nil {
		return Table{}, err
	}
	slices.SortFunc(r.table.Pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	return r.table, nil
}

// reader reads one file.
type reader struct {
	*xml.Decoder
	from  string
	table Table

	lines       map[string]int      // where each pool begins, by name
	jobsDefault int                 // default MaxRunning
	maxDefault  int                 // default Max, in slots of each phase
	explicit    map[string]settings // by pool
}

// settings marks the settings that a pool overrides, among those with a default in the file.
type settings struct{ jobs, resources bool }

func (r *reader) fail(format string, args ...any) error {
	line, _ := r.InputPos()
	return fmt.Errorf("%s:%d: %s", r.from, line, fmt.Sprintf(format, args...))
}

func (r *reader) warn(format string, args ...any) {
	line, _ := r.InputPos()
	switch n := len(r.table.Warnings); {
	case n < maxWarnings:
		r.table.Warnings = append(r.table.Warnings, fmt.Sprintf("%s:%d: %s", r.from, line, fmt.Sprintf(format, args...)))
	case n == maxWarnings:
		r.table.Warnings = append(r.table.Warnings, r.from+": and more")
	}
}

func (r *reader) file() error {
	r.lines, r.explicit = make(map[string]int), make(map[string]settings)
	root, err := r.child()
	switch {
	case err != nil:
		return err
	case root == nil:
		return r.fail("it is empty; an allocation file begins with <allocations>")
	case root.Name.Local != "allocations":
		return r.fail("it begins with <%s>; an allocation file begins with <allocations>", root.Name.Local)
	}
	if err := r.children(func(e *xml.StartElement) error { return r.topLevel(e) }); err != nil {
		return err
	}
	if more, err := r.child(); err != nil {
		return err
	} else if more != nil {
		return r.fail("<%s> after the end of <allocations>", more.Name.Local)
	}
	return r.defaults()
}

// child returns the next element within the open one, or nil.
func (r *reader) child() (*xml.StartElement, error) {
	for {
		token, err := r.Token()
		switch t := token.(type) {
		case xml.StartElement:
			return &t, nil
		case xml.EndElement:
			return nil, nil
		case xml.CharData:
			if text := strings.TrimSpace(string(t)); text != "" {
				return nil, r.fail("unexpected text %.40q", text)
			}
		}
		var syntax *xml.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case errors.As(err, &syntax):
			return nil, fmt.Errorf("%s:%d: %s", r.from, syntax.Line, syntax.Msg)
		case err != nil:
			return nil, r.fail("%v", err)
		}
	}
}

// children reads all elements within the open one.
func (r *reader) children(read func(*xml.StartElement) error) error {
	for {
		e, err := r.child()
		if err != nil || e == nil {
			return err
		}
		if err := read(e); err != nil {
			return err
		}
	}
}

// topLevel reads an element directly within <allocations>.
func (r *reader) topLevel(e *xml.StartElement) (err error) {
	switch e.Name.Local {
	case "pool":
		return r.pool(e, "")
	case "queue":
		if name, _ := nameOf(e); strings.TrimSpace(name) == "root" {
			return r.children(func(e *xml.StartElement) error { return r.inRoot(e) })
		}
		return r.pool(e, "")
	case "poolMaxJobsDefault", "queueMaxAppsDefault":
		r.jobsDefault, err = r.number(e)
		return err
	case "queueMaxResourcesDefault":
		r.maxDefault, err = r.slots(e)
		return err
	}
	return r.unknown(e, "")
}

// inRoot reads an element within the queue root; only queues in it count.
func (r *reader) inRoot(e *xml.StartElement) error {
	switch e.Name.Local {
	case "pool", "queue":
		return r.pool(e, "")
	case "aclSubmitApps": // only each pool's own list counts
		return r.skip()
	}
	return r.unknown(e, " of root")
}

func (r *reader) unknown(e *xml.StartElement, where string) error {
	r.warn("%s%s is not known to Quern and has no effect", e.Name.Local, where)
	return r.skip()
}

func (r *reader) skip() error {
	if err := r.Skip(); err != nil {
		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) {
			return fmt.Errorf("%s:%d: %s", r.from, syntax.Line, syntax.Msg)
		}
		return r.fail("%v", err)
	}
	return nil
}

func nameOf(e *xml.StartElement) (string, bool) {
	for _, a := range e.Attr {
		if a.Name.Local == "name" {
			return a.Value, true
		}
	}
	return "", false
}

// pool reads a pool and the pools in it. prefix is the name of the pool around it and a dot.
func (r *reader) pool(e *xml.StartElement, prefix string) error {
	line, _ := r.InputPos()
	name, ok := nameOf(e)
	if name = strings.TrimSpace(name); prefix == "" {
		name = Name(name)
	}
	if !ok || name == "" {
		return r.fail("a <%s> without a name", e.Name.Local)
	}
	name = prefix + name
	if len(name) > maxName || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return r.fail("%.60q is not a pool name: want no spaces and at most %d bytes", name, maxName)
	}
	if first, exists := r.lines[name]; exists {
		return r.fail("pool %s is already in line %d", name, first)
	}
	if len(r.lines) == maxPools {
		return r.fail("more than %d pools", maxPools)
	}
	r.lines[name] = line
	p := unlimited(name)
	leaf := true
	err := r.children(func(e *xml.StartElement) error {
		if e.Name.Local == "queue" || e.Name.Local == "pool" {
			leaf = false
			return r.pool(e, name+".")
		}
		return r.setting(&p, e)
	})
	if err != nil {
		return err
	}
	if !leaf {
		if !isPlain(&p) {
			r.warn("the settings of pool %s do not bind the pools in it, which have their own", name)
		}
		return nil
	}
	for i, tasks := range []string{"maps", "reduces"} {
		if p.Max[i] != Unlimited && p.Min[i] > p.Max[i] {
			return r.fail("pool %s: the minimum of %d %s exceeds the maximum of %d", name, p.Min[i], tasks, p.Max[i])
		}
	}
	r.table.Pools = append(r.table.Pools, p)
	return nil
}

// isPlain reports whether a pool has no settings.
func isPlain(p *Pool) bool {
	none := unlimited(p.Name)
	return p.Min == none.Min && p.Max == none.Max && p.Weight == 0 && p.MaxRunning == Unlimited && p.Submitters == nil
}

// setting reads one setting of a pool.
func (r *reader) setting(p *Pool, e *xml.StartElement) (err error) {
	explicit := r.explicit[p.Name]
	var n int
	switch e.Name.Local {
	case "minMaps":
		p.Min[0], err = r.number(e)
	case "minReduces":
		p.Min[1], err = r.number(e)
	case "maxMaps":
		p.Max[0], err = r.number(e)
	case "maxReduces":
		p.Max[1], err = r.number(e)
	case "minResources":
		if n, err = r.slots(e); n != Unlimited {
			p.Min = [2]int{n, n}
		}
	case "maxResources":
		n, err = r.slots(e)
		p.Max, explicit.resources = [2]int{n, n}, true
	case "maxRunningJobs", "maxRunningApps":
		p.MaxRunning, err = r.number(e)
		explicit.jobs = true
	case "weight":
		p.Weight, err = r.weight(e)
	case "aclSubmitApps":
		p.Submitters, err = r.submitters(p.Name)
	default:
		return r.unknown(e, " of pool "+p.Name)
	}
	r.explicit[p.Name] = explicit
	return err
}

// defaults applies the file's defaults to pools that do not override them.
func (r *reader) defaults() error {
	if _, ok := r.lines[wire.DefaultPool]; !ok && (r.jobsDefault != Unlimited || r.maxDefault != Unlimited) {
		r.table.Pools = append(r.table.Pools, unlimited(wire.DefaultPool))
	}
	for i := range r.table.Pools {
		p := &r.table.Pools[i]
		explicit := r.explicit[p.Name]
		if !explicit.jobs {
			p.MaxRunning = r.jobsDefault
		}
		if r.maxDefault == Unlimited || explicit.resources {
			continue
		}
		for phase := range p.Max {
			if p.Max[phase] == Unlimited {
				p.Max[phase] = max(r.maxDefault, p.Min[phase])
			}
		}
	}
	return nil
}

// text reads the content of an element that has only text.
func (r *reader) text() (string, error) {
	var b strings.Builder
	for {
		token, err := r.Token()
		switch t := token.(type) {
		case xml.CharData:
			b.Write(t)
		case xml.StartElement:
			return "", r.fail("unexpected <%s>", t.Name.Local)
		case xml.EndElement:
			return b.String(), nil
		}
		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) {
			return "", fmt.Errorf("%s:%d: %s", r.from, syntax.Line, syntax.Msg)
		}
		if err != nil {
			return "", r.fail("%v", err)
		}
	}
}

func (r *reader) number(e *xml.StartElement) (int, error) {
	text, err := r.text()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 || n > maxAmount {
		return 0, r.fail("%s is %q: want a whole number from 0 to %d", e.Name.Local, text, maxAmount)
	}
	return n, nil
}

func (r *reader) weight(e *xml.StartElement) (float64, error) {
	text, err := r.text()
	if err != nil {
		return 0, err
	}
	w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(w >= minWeight && w <= 1/minWeight) || math.IsNaN(w) {
		return 0, r.fail("%s is %q: want a number from %v to %v", e.Name.Local, text, minWeight, 1/minWeight)
	}
	return w, nil
}

// minWeight keeps weights above rounding errors.
const minWeight = 1e-6

// slots reads resources as slots. It returns Unlimited if they do not limit slots.
func (r *reader) slots(e *xml.StartElement) (int, error) {
	text, err := r.text()
	if err != nil {
		return 0, err
	}
	memory, cores, others, err := resources(text)
	for _, name := range others {
		r.warn("resource %s of %s is not known to Quern and has no effect", name, e.Name.Local)
	}
	switch {
	case err != nil:
		return 0, r.fail("%s is %q: want \"X mb, N vcores\" or \"N vcores\"", e.Name.Local, strings.TrimSpace(text))
	case memory < 0 && cores < 0 && len(others) > 0:
		return Unlimited, nil
	case memory < 0 && cores < 0:
		r.warn("%s is %q: percentages of a cluster are not known to Quern and have no effect", e.Name.Local, strings.TrimSpace(text))
		return Unlimited, nil
	case memory <= 0 && cores <= 0:
		return 0, nil
	case memory <= 0:
		return cores, nil
	case cores <= 0:
		return memory / SlotMemory, nil
	}
	return min(memory/SlotMemory, cores), nil
}

// resources reads "X mb, N vcores" in any order and without one of them, or "memory-mb=X,
// vcores=N" with other resources. Missing values and percentages are -1.
func resources(text string) (memory, cores int, others []string, err error) {
	memory, cores = -1, -1
	if strings.Contains(text, "%") {
		return memory, cores, nil, nil
	}
	bad := errors.New("no resources")
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		unit, number, named := strings.Cut(part, "=")
		if !named {
			digits := len(part) - len(strings.TrimLeft(part, "0123456789"))
			number, unit = part[:digits], part[digits:]
		}
		unit = strings.TrimSpace(unit)
		into := &memory
		switch strings.ToLower(unit) {
		case "mb", "memory-mb":
		case "vcores", "vcore":
			into = &cores
		default:
			if !named || !isResource(unit) {
				return 0, 0, nil, bad
			}
			others = append(others, unit)
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(number))
		if err != nil || n < 0 || n > maxAmount {
			return 0, 0, nil, bad
		}
		*into = n
	}
	return memory, cores, others, nil
}

// isResource reports whether text can be the name of a resource, such as "yarn.io/gpu".
func isResource(text string) bool {
	strange := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-/", c))
	}
	return text != "" && len(text) <= maxName && !strings.ContainsFunc(text, strange)
}

// submitters reads Hadoop's list of users and, after a space, groups. nil means all users.
func (r *reader) submitters(pool string) ([]string, error) {
	text, err := r.text()
	if err != nil || strings.TrimSpace(text) == "*" {
		return nil, err
	}
	users, groups, _ := strings.Cut(text, " ")
	if groups = strings.TrimSpace(groups); groups != "" {
		r.warn("groups %q of pool %s are not known to Quern: name the users", groups, pool)
	}
	var all []string
	for user := range strings.SplitSeq(users, ",") {
		if user = strings.TrimSpace(user); user != "" {
			all = append(all, user)
		}
	}
	if all == nil {
		all = []string{""} // matches no user
	}
	return all, nil
}
