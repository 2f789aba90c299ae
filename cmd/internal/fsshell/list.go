package fsshell

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quernmr/quern/dfs"
)

// lister prints a listing. Its columns only get wider.
type lister struct {
	*call
	replicas, length, owner, group int // widths
}

// ls lists paths, and what is in directories.
func (r *call) ls(args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	if r.flag["d"] {
		r.flag["R"] = false
	}
	l := &lister{call: r, replicas: 3, length: 10}
	return r.each(args, func(p place) error {
		if p.Dir && !r.flag["d"] {
			return l.directory(p)
		}
		l.widen([]place{p})
		l.line(p)
		return nil
	})
}

func (l *lister) directory(p place) error {
	all, err := p.children()
	if err != nil {
		return err
	}
	if !l.flag["R"] && len(all) > 0 {
		if !l.flag["C"] {
			l.println(fmt.Sprintf("Found %d items", len(all)))
		}
		slices.SortStableFunc(all, l.compare)
	}
	l.widen(all)
	for _, child := range all {
		if l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		l.line(child)
		if l.flag["R"] && child.Dir {
			if err := l.directory(child); err != nil {
				l.fail(err)
			}
		}
	}
	return nil
}

// time returns the time that a listing shows.
func (l *lister) time(p place) time.Time {
	if l.flag["u"] {
		return p.Accessed
	}
	return p.Modified
}

func (l *lister) compare(a, b place) (order int) {
	switch {
	case l.flag["t"]:
		order = cmp.Compare(l.time(b).UnixMilli(), l.time(a).UnixMilli())
	case l.flag["S"]:
		order = cmp.Compare(b.Length, a.Length)
	default:
		order = strings.Compare(a.Name, b.Name)
	}
	if l.flag["r"] {
		return -order
	}
	return order
}

func (l *lister) widen(all []place) {
	for _, p := range all {
		l.replicas = max(l.replicas, len(strconv.Itoa(p.Replicas)))
		l.length = max(l.length, len(strconv.FormatInt(p.Length, 10)))
		l.owner, l.group = max(l.owner, utf8.RuneCountInString(p.Owner)), max(l.group, utf8.RuneCountInString(p.Group))
	}
}

func (l *lister) line(p place) {
	name := p.text
	if l.flag["q"] {
		name = printable(name)
	}
	if l.flag["C"] {
		l.println(name)
		return
	}
	replicas := "-"
	if !p.Dir {
		replicas = strconv.Itoa(p.Replicas)
	}
	mark := " "
	if p.ACL {
		mark = "+"
	}
	l.println(fmt.Sprintf("%s%s%*s %-*s %-*s %*s %s %s", kindAndMode(p.Attributes), mark, l.replicas, replicas, l.owner, p.Owner, l.group, p.Group,
		l.length, size(p.Length, l.flag["h"]), l.time(p).In(l.Location).Format("2006-01-02 15:04"), name))
}

// printable replaces what cannot be printed by question marks.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

func kindAndMode(a *dfs.Attributes) string {
	if a.Dir {
		return "d" + modeText(a.Mode)
	}
	return "-" + modeText(a.Mode)
}

// modeText is the form rwxr-xr-x of a mode, with t for a sticky bit.
func modeText(mode uint32) string {
	text := []byte("rwxrwxrwx")
	for i := range text {
		if mode&(0o400>>i) == 0 {
			text[i] = '-'
		}
	}
	switch {
	case mode&0o1000 != 0 && mode&1 != 0:
		text[8] = 't'
	case mode&0o1000 != 0:
		text[8] = 'T'
	}
	return string(text)
}

// size formats a number of bytes; for people with a prefix, as 1.5 K.
func size(n int64, human bool) string {
	if !human || n < 1<<10 {
		return strconv.FormatInt(n, 10)
	}
	const prefixes = "KMGTPE"
	i := 0
	for i+1 < len(prefixes) && n >= 1<<(10*(i+2)) {
		i++
	}
	unit := uint64(1) << (10 * (i + 1))
	whole, rest := uint64(n)/unit, uint64(n)%unit
	if rest == 0 {
		return fmt.Sprintf("%d %c", whole, prefixes[i])
	}
	tenths := whole*10 + (rest*10+unit/2)/unit // rounded half up
	if tenths >= 10240 {
		return fmt.Sprintf("1.0 %c", prefixes[i+1])
	}
	return fmt.Sprintf("%d.%d %c", tenths/10, tenths%10, prefixes[i])
}
