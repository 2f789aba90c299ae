package pool

import (
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

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

// slots reads resources as slots. It returns Unlimited if they do not limit slots. where completes
// the name of the element, such as " of pool a".
func (r *reader) slots(e *xml.StartElement, where string) (int, error) {
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
		return Unlimited, r.ignored(Percentages, fmt.Sprintf("%s%s in percent", e.Name.Local, where))
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

// seconds reads a timeout. The leader looks once a second, so 0 counts as 1.
func (r *reader) seconds(e *xml.StartElement) (time.Duration, error) {
	n, err := r.number(e)
	return time.Duration(max(n, 1)) * time.Second, err
}

func (r *reader) fraction(e *xml.StartElement) (float64, error) {
	text, err := r.text()
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, r.fail("%s is %q: want a number from 0 to 1", e.Name.Local, text)
	}
	return x, nil
}

func (r *reader) boolean(e *xml.StartElement) (bool, error) {
	text, err := r.text()
	if err != nil {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, r.fail("%s is %q: want true or false", e.Name.Local, text)
}

// users reads Hadoop's list of users and, after a space, groups. The result is never nil.
func (r *reader) users(e *xml.StartElement, pool string) (*wire.ACL, error) {
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	users, groups, _ := strings.Cut(text, " ")
	list := &wire.ACL{Users: namesIn(users), Groups: namesIn(groups)}
	list.All = strings.TrimSpace(text) == AllUsers || slices.Contains(list.Users, AllUsers)
	if list.All {
		return &wire.ACL{All: true}, nil
	}
	for _, name := range slices.Concat(list.Users, list.Groups) {
		if err := wire.CheckACLName(name); err != nil {
			return nil, r.fail("%s of pool %s: %v", e.Name.Local, pool, err)
		}
	}
	return list, nil
}

// namesIn splits a list of names at commas.
func namesIn(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
