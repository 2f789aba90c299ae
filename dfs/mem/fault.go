package mem

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
)

// ErrFault is wrapped by every injected error.
var ErrFault = errors.New("injected fault")

// fault is one line of a specification, with counters.
type fault struct {
	op, pattern string
	after       int // remaining calls that succeed before it
	remaining   int // remaining calls that fail; negative: all
	effect      effect
}

// effect is the effect of a fault on a call.
type effect struct {
	err  error
	torn int  // bytes of the write that are stored
	done bool // the call has its effect but reports an error
}

const operations = " open read create write close mkdir mkdirall syncdir stat list renamefile renamedir remove removeall rename any "

// SetFaults replaces all faults by the faults of a specification. An empty specification
// removes all faults.
func (f *FS) SetFaults(spec string) error {
	var faults []*fault
	for i, line := range strings.Split(spec, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		fault, err := parseFault(words)
		if err != nil {
			return fmt.Errorf("fault in line %d: %w", i+1, err)
		}
		faults = append(faults, fault)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
	return nil
}

func parseFault(words []string) (*fault, error) {
	if len(words) < 2 {
		return nil, errors.New("want an operation and a pattern")
	}
	fault := &fault{op: words[0], pattern: words[1], remaining: -1, effect: effect{err: wrapped(syscall.EIO)}}
	if !strings.Contains(operations, " "+fault.op+" ") {
		return nil, fmt.Errorf("unknown operation %q", fault.op)
	}
	if _, err := path.Match(fault.pattern, ""); err != nil {
		return nil, fmt.Errorf("pattern %q: %w", fault.pattern, err)
	}
	for _, word := range words[2:] {
		if err := fault.set(word); err != nil {
			return nil, fmt.Errorf("option %q: %w", word, err)
		}
	}
	return fault, nil
}

func (t *fault) set(option string) (err error) {
	name, value, _ := strings.Cut(option, "=")
	switch name {
	case "done":
		t.effect.done = true
	case "after":
		t.after, err = strconv.Atoi(value)
	case "times":
		t.remaining, err = strconv.Atoi(value)
	case "torn":
		t.effect.torn, err = strconv.Atoi(value)
	case "error":
		t.effect.err, err = errorNamed(value)
	default:
		err = errors.New("unknown")
	}
	return err
}

func errorNamed(name string) (error, error) {
	switch name {
	case "eio":
		return wrapped(syscall.EIO), nil
	case "enospc":
		return wrapped(syscall.ENOSPC), nil
	case "erofs":
		return wrapped(syscall.EROFS), nil
	case "eacces":
		return wrapped(syscall.EACCES), nil
	case "timeout":
		return wrapped(os.ErrDeadlineExceeded), nil
	}
	return nil, errors.New("unknown error")
}

func wrapped(err error) error { return fmt.Errorf("%w: %w", ErrFault, err) }

// faultFor returns the fault that affects a call. The lock must be held.
func (f *FS) faultFor(op string, names []string) *effect {
	var first *effect
	for _, t := range f.faults {
		if !t.matches(op, names) {
			continue
		}
		if t.after > 0 {
			t.after--
			continue
		}
		if t.remaining == 0 || first != nil {
			continue
		}
		if t.remaining > 0 {
			t.remaining--
		}
		first = &t.effect
	}
	return first
}

func (t *fault) matches(op string, names []string) bool {
	if t.op != op && t.op != "any" && !(t.op == "rename" && strings.HasPrefix(op, "rename")) {
		return false
	}
	for _, name := range names {
		if matches(t.pattern, "/"+strings.Join(split(name), "/")) {
			return true
		}
	}
	return false
}

func matches(pattern, p string) bool {
	if top, ok := strings.CutSuffix(pattern, "**"); ok {
		top = strings.TrimSuffix(top, "/")
		return top == "" || p == top || strings.HasPrefix(p, top+"/")
	}
	ok, err := path.Match(pattern, p)
	return ok && err == nil
}
