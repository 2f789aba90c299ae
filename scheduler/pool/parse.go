package pool

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

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
// pool such as "a.b"; names omit root. Preemption's timeouts, thresholds and allowPreemptionFrom,
// the lists of users, and the limits of users are described in docs/scheduling.md. Elements that
// limit and protect nothing, and other resources, have no effect and get a warning. Everything else
// is refused, unless ignore has its name; see [Percentages] too. Errors and warnings begin with the
// file's name, from, and the line.
func Parse(from string, data []byte, ignore ...string) (Table, error) {
	r := &reader{
		Decoder: xml.NewDecoder(bytes.NewReader(data)), from: from, table: Table{From: from}, jobsDefault: Unlimited, maxDefault: Unlimited,
		root: given{Pool: unlimited(Root)}, ignore: ignore,
	}
	if err := r.file(); err != nil {
		return Table{}, err
	}
	return r.table, nil
}

// reader reads one file.
type reader struct {
	*xml.Decoder
	from   string
	ignore []string // elements that may have no effect
	table  Table

	root        given
	pools       []given
	lines       map[string]int // where each pool begins, by name
	jobsDefault int            // default MaxRunning
	maxDefault  int            // default Max, in slots of each phase
	preemption  rules          // defaults of the root
}

// given is a pool as the file has it, before it inherits from others.
type given struct {
	Pool
	line            int
	jobs, resources bool // the pool overrides defaults of the file
	rules
	submit, administer *wire.ACL // nil: no list
}

// rules are the rules of preemption that a pool has itself; nil: the pool around it decides.
type rules struct {
	minTimeout, fairTimeout *time.Duration
	threshold               *float64
	spared                  bool
}

func (r *reader) fail(format string, args ...any) error {
	line, _ := r.InputPos()
	return fmt.Errorf("%s:%d: %s", r.from, line, fmt.Sprintf(format, args...))
}

func (r *reader) warn(format string, args ...any) {
	line, _ := r.InputPos()
	r.warnAt(line, format, args...)
}

func (r *reader) warnAt(line int, format string, args ...any) {
	switch n := len(r.table.Warnings); {
	case n < maxWarnings:
		r.table.Warnings = append(r.table.Warnings, fmt.Sprintf("%s:%d: %s", r.from, line, fmt.Sprintf(format, args...)))
	case n == maxWarnings:
		r.table.Warnings = append(r.table.Warnings, r.from+": and more")
	}
}

func (r *reader) file() error {
	r.lines = make(map[string]int)
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
	r.resolve()
	return nil
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
	case "pool", "queue":
		if name, _ := nameOf(e); strings.TrimSpace(name) == Root {
			return r.children(func(e *xml.StartElement) error { return r.inRoot(e) })
		}
		return r.pool(e, "")
	case "user":
		return r.user(e)
	case "poolMaxJobsDefault", "queueMaxAppsDefault":
		r.jobsDefault, err = r.number(e)
		return err
	case "queueMaxResourcesDefault":
		r.maxDefault, err = r.slots(e, "")
		return err
	case "userMaxJobsDefault", "userMaxAppsDefault":
		n, err := r.number(e)
		r.table.Users = append(r.table.Users, UserLimit{MaxRunning: n})
		return err
	case "fairSharePreemptionTimeout", "defaultFairSharePreemptionTimeout":
		return r.timeout(e, &r.preemption.fairTimeout)
	case "defaultMinSharePreemptionTimeout":
		return r.timeout(e, &r.preemption.minTimeout)
	case "defaultFairSharePreemptionThreshold":
		return r.threshold(e, &r.preemption)
	}
	return r.unknown(e, "")
}

// inRoot reads an element within the queue root.
func (r *reader) inRoot(e *xml.StartElement) error {
	switch e.Name.Local {
	case "pool", "queue":
		return r.pool(e, "")
	case "minMaps", "minReduces", "minResources", "weight": // the root has all slots
		return r.without(e.Name.Local, " of root")
	}
	return r.setting(&r.root, e)
}

// user reads the limit of a user.
func (r *reader) user(e *xml.StartElement) error {
	name, _ := nameOf(e)
	name = strings.TrimSpace(name)
	switch {
	case name == "" || len(name) > maxName:
		return r.fail("a <user> needs a name of at most %d bytes", maxName)
	case len(r.table.Users) == maxPools:
		return r.fail("more than %d users", maxPools)
	case slices.ContainsFunc(r.table.Users, func(u UserLimit) bool { return u.Name == name }):
		return r.fail("user %s has two limits", name)
	}
	return r.children(func(e *xml.StartElement) error {
		if e.Name.Local != "maxRunningJobs" && e.Name.Local != "maxRunningApps" {
			return r.unknown(e, " of user "+name)
		}
		n, err := r.number(e)
		r.table.Users = append(r.table.Users, UserLimit{Name: name, MaxRunning: n})
		return err
	})
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
	if len(name) > maxName || name == Root || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return r.fail("%.60q is not a pool name: want no spaces and at most %d bytes", name, maxName)
	}
	if first, exists := r.lines[name]; exists {
		return r.fail("pool %s is already in line %d", name, first)
	}
	if len(r.lines) == maxPools {
		return r.fail("more than %d pools", maxPools)
	}
	r.lines[name] = line
	p := given{Pool: unlimited(name), line: line}
	err := r.children(func(e *xml.StartElement) error {
		if e.Name.Local == "queue" || e.Name.Local == "pool" {
			return r.pool(e, name+".")
		}
		return r.setting(&p, e)
	})
	if err != nil {
		return err
	}
	for i, tasks := range []string{"maps", "reduces"} {
		if p.Max[i] != Unlimited && p.Min[i] > p.Max[i] {
			return r.fail("pool %s: the minimum of %d %s exceeds the maximum of %d", name, p.Min[i], tasks, p.Max[i])
		}
	}
	for _, a := range e.Attr {
		p.Inner = p.Inner || a.Name.Local == "type" && a.Value == "parent"
	}
	r.pools = append(r.pools, p)
	return nil
}

// setting reads one setting of a pool.
func (r *reader) setting(p *given, e *xml.StartElement) (err error) {
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
		if n, err = r.slots(e, " of pool "+p.Name); n != Unlimited {
			p.Min = [2]int{n, n}
		}
	case "maxResources":
		n, err = r.slots(e, " of pool "+p.Name)
		p.Max, p.resources = [2]int{n, n}, true
	case "maxRunningJobs", "maxRunningApps":
		p.MaxRunning, err = r.number(e)
		p.jobs = true
	case "weight":
		p.Weight, err = r.weight(e)
	case "aclSubmitApps":
		p.submit, err = r.users(e, p.Name)
	case "aclAdministerApps":
		p.administer, err = r.users(e, p.Name)
	case "minSharePreemptionTimeout":
		err = r.timeout(e, &p.minTimeout)
	case "fairSharePreemptionTimeout":
		err = r.timeout(e, &p.fairTimeout)
	case "fairSharePreemptionThreshold":
		err = r.threshold(e, &p.rules)
	case "allowPreemptionFrom":
		var allowed bool
		allowed, err = r.boolean(e)
		p.spared = !allowed
	default:
		return r.unknown(e, " of pool "+p.Name)
	}
	return err
}

func (r *reader) timeout(e *xml.StartElement, into **time.Duration) error {
	d, err := r.seconds(e)
	*into = &d
	return err
}

func (r *reader) threshold(e *xml.StartElement, into *rules) error {
	x, err := r.fraction(e)
	into.threshold = &x
	return err
}
