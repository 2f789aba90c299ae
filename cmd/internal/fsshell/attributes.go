package fsshell

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs"
)

func (r *call) mkdir(args []string) error {
	return r.eachNew(args, func(p place) error {
		switch {
		case p.Attributes == nil:
			return r.makeDir(p)
		case !p.Dir:
			return &pathError{p.text, notDirectory}
		case !r.flag["p"]:
			return &pathError{p.text, exists}
		}
		return nil
	})
}

func (r *call) makeDir(p place) error {
	parent := dfs.Dir(p.url)
	above, err := r.at("", parent)
	if err != nil {
		return err
	}
	switch {
	case above.Attributes == nil && !r.flag["p"]:
		return &pathError{qualified(parent), notFound}
	case above.Attributes != nil && !above.Dir:
		return worded("Parent path is not a directory: %s", qualified(parent))
	}
	return p.files.MkdirAll(p.url)
}

func (r *call) touchz(args []string) error {
	return r.eachNew(args, func(p place) error {
		switch {
		case p.Attributes != nil && p.Dir:
			return &pathError{p.text, isDirectory}
		case p.Attributes != nil && p.Size > 0:
			return &pathError{p.text, "Not a zero-length file"}
		case p.Attributes != nil:
			if err := p.files.Remove(p.url); err != nil {
				return err
			}
		}
		t := &transfer{call: r}
		if found, err := t.parentExists(p); err != nil {
			return err
		} else if !found {
			return &pathError{p.text, notFound + ": `" + qualified(p.url) + "'"}
		}
		return fill(p.files, p.url, strings.NewReader(""))
	})
}

// touch makes files, or changes their times.
func (r *call) touch(args []string) error {
	at := time.Now()
	stamp, dated := r.value["t"]
	if dated {
		var err error
		if at, err = time.ParseInLocation("20060102:150405", stamp, r.Location); err != nil {
			return usagef("Unable to parse the specified timestamp %s. The expected format is yyyyMMdd:HHmmss", stamp)
		}
	}
	return r.eachNew(args, func(p place) error {
		if p.Attributes != nil {
			return r.setTimes(p, at)
		}
		t := &transfer{call: r}
		if found, err := t.parentExists(p); err != nil {
			return err
		} else if !found {
			return &pathError{p.text, notFound + ": `" + qualified(p.url) + "'"}
		}
		if r.flag["c"] {
			return nil
		}
		if err := fill(p.files, p.url, strings.NewReader("")); err != nil || !dated {
			return err
		}
		p, err := r.at(p.text, p.url)
		if err != nil {
			return err
		}
		return r.must(p, func(p place) error { return r.setTimes(p, at) })
	})
}

// setTimes sets both times of a path, or the one that -a or -m asks for.
func (r *call) setTimes(p place, at time.Time) error {
	modified, accessed := at, at
	if r.flag["a"] != r.flag["m"] {
		if r.flag["a"] {
			modified = p.Modified
		} else {
			accessed = p.Accessed
		}
	}
	return p.files.SetTimes(p.url, modified, accessed)
}

// test answers with the exit code.
func (r *call) test(args []string) error {
	switch len(r.flag) {
	case 0:
		return usagef("No test flag given")
	case 1:
	default:
		return usagef("Only one test flag is allowed")
	}
	return r.eachNew(args, func(p place) error {
		answer, err := r.answer(p)
		if !answer {
			r.code = exitFailed
		}
		return err
	})
}

func (r *call) answer(p place) (bool, error) {
	switch {
	case p.Attributes == nil:
		return false, nil
	case r.flag["d"]:
		return p.Dir, nil
	case r.flag["f"]:
		return !p.Dir, nil
	case r.flag["s"]:
		return p.Length > 0, nil
	case r.flag["z"]:
		return p.Length == 0, nil
	case r.flag["r"] || r.flag["w"]:
		err := p.files.Access(p.url, r.flag["w"])
		if errors.Is(err, fs.ErrPermission) {
			return false, nil
		}
		return err == nil, err
	}
	return true, nil
}

func (r *call) stat(args []string) error {
	format := "%y"
	if strings.Contains(args[0], "%") {
		format, args = args[0], args[1:]
	}
	if err := r.bounds(args); err != nil {
		return err
	}
	return r.each(args, func(p place) error {
		var b strings.Builder
		for i := 0; i < len(format); i++ {
			if format[i] != '%' {
				b.WriteByte(format[i])
			} else if i++; i < len(format) {
				b.WriteString(p.attribute(format[i]))
			}
		}
		r.println(b.String())
		return nil
	})
}

// attribute is what -stat prints for a letter after %; another character is itself.
func (p place) attribute(letter byte) string {
	const times = "2006-01-02 15:04:05"
	switch letter {
	case 'a':
		return strconv.FormatUint(uint64(p.Mode), 8)
	case 'A':
		return modeText(p.Mode)
	case 'b':
		return strconv.FormatInt(p.Length, 10)
	case 'F':
		if p.Dir {
			return "directory"
		}
		return "regular file"
	case 'g':
		return p.Group
	case 'n':
		return dfs.Base(p.url)
	case 'o':
		return strconv.FormatInt(p.BlockSize, 10)
	case 'r':
		return strconv.Itoa(p.Replicas)
	case 'u':
		return p.Owner
	case 'x':
		return p.Accessed.UTC().Format(times)
	case 'X':
		return strconv.FormatInt(p.Accessed.UnixMilli(), 10)
	case 'y':
		return p.Modified.UTC().Format(times)
	case 'Y':
		return strconv.FormatInt(p.Modified.UnixMilli(), 10)
	}
	return string(letter)
}

// chmod changes permissions.
func (r *call) chmod(args []string) error {
	change, ok := parseMode(args[0])
	if !ok {
		return usagef("chmod : mode '%s' does not match the expected pattern.", args[0])
	}
	return r.each(args[1:], r.below(func(p place) error {
		if mode := change(p.Mode, p.Dir); mode != p.Mode {
			return p.files.SetMode(p.url, mode)
		}
		return nil
	}))
}

// below returns a function that calls do for a path, and with -R for all below it.
func (r *call) below(do func(p place) error) func(p place) error {
	var walk func(p place) error
	walk = func(p place) error {
		if err := do(p); err != nil || !p.Dir || !r.flag["R"] {
			return err
		}
		all, err := p.children()
		for _, child := range all {
			if err := r.must(child, walk); err != nil {
				r.fail(err)
			}
		}
		return err
	}
	return walk
}

// Names of owners and groups, as Hadoop accepts them.
var (
	ownerForm = regexp.MustCompile(`^\s*([-_./@a-zA-Z0-9]+)?(?::([-_./@a-zA-Z0-9]*))?\s*$`)
	groupForm = regexp.MustCompile(`^\s*([-_./@a-zA-Z0-9]+)\s*$`)
)

// chown changes owners and groups.
func (r *call) chown(args []string) error {
	form := ownerForm.FindStringSubmatch(args[0])
	switch {
	case form == nil:
		return usagef("'%s' does not match expected pattern for [owner][:group].", args[0])
	case form[1] == "" && form[2] == "":
		return usagef("'%s' does not specify owner or group.", args[0])
	}
	return r.setOwner(args[1:], form[1], form[2])
}

func (r *call) chgrp(args []string) error {
	form := groupForm.FindStringSubmatch(args[0])
	if form == nil {
		return usagef("'%s' does not match expected pattern for group", args[0])
	}
	return r.setOwner(args[1:], "", form[1])
}

// setOwner changes owners and groups; an empty name stays.
func (r *call) setOwner(paths []string, owner, group string) error {
	return r.each(paths, r.below(func(p place) error {
		if (owner == "" || owner == p.Owner) && (group == "" || group == p.Group) {
			return nil
		}
		if err := p.files.SetOwner(p.url, owner, group); err != nil {
			return fmt.Errorf("changing ownership of '%s': %w", p.text, err)
		}
		return nil
	}))
}

// parseMode parses a mode in octal, or changes like u+x,g=r,o-r, and returns the change of a mode.
func parseMode(text string) (change func(mode uint32, dir bool) uint32, ok bool) {
	if n, err := strconv.ParseUint(text, 8, 32); err == nil && len(text) >= 3 && len(text) <= 5 && n <= 0o1777 {
		return func(uint32, bool) uint32 { return uint32(n) }, true
	}
	var changes []func(uint32, bool) uint32
	for part := range strings.SplitSeq(text, ",") {
		at := strings.IndexAny(part, "+-=")
		if at < 0 || strings.Trim(part[:at], "ugoa") != "" || strings.Trim(part[at+1:], "rwxXt") != "" || len(part) == at+1 {
			return nil, false
		}
		changes = append(changes, symbolic(part[:at], part[at], part[at+1:]))
	}
	return func(mode uint32, dir bool) uint32 {
		for _, change := range changes {
			mode = change(mode, dir)
		}
		return mode
	}, true
}

// symbolic returns a change of the permissions for some users: u, g, o, or a.
func symbolic(users string, op byte, letters string) func(mode uint32, dir bool) uint32 {
	var of uint32 // bits of the users
	for i, user := range "ugo" {
		if users == "" || strings.ContainsRune(users, user) || strings.Contains(users, "a") {
			of |= 0o700 >> (3 * i)
		}
	}
	return func(mode uint32, dir bool) uint32 {
		var bits uint32
		for _, letter := range letters {
			switch {
			case letter == 'r':
				bits |= 0o444 & of
			case letter == 'w':
				bits |= 0o222 & of
			case letter == 'x', letter == 'X' && (dir || mode&0o111 != 0):
				bits |= 0o111 & of
			case letter == 't':
				bits |= 0o1000
			}
		}
		switch op {
		case '+':
			return mode | bits
		case '-':
			return mode &^ bits
		}
		return mode&^of | bits
	}
}
