package dfs

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Creation has settings of new files and directories. Zero values leave them to the FS.
type Creation struct {
	Allowed     uint32 // permission bits that new entries may have; see [ParseUmask]
	Replication int64  // copies of each block, in HDFS
	BlockSize   int64  // bytes of a block, in HDFS
}

// Creating returns f with settings for new entries. An FS leaves out settings that it does not have.
func Creating(f FS, c Creation) FS {
	if s, ok := f.(interface{ Creating(Creation) FS }); ok && c != (Creation{}) {
		return s.Creating(c)
	}
	return f
}

// Creating applies the function Creating to the FS of every scheme.
func (m Mux) Creating(c Creation) FS {
	creating := make(Mux, len(m))
	for scheme, f := range m {
		creating[scheme] = Creating(f, c)
	}
	return creating
}

// permissionBits has the bits of each class of users in a symbolic umask.
var permissionBits = map[rune]uint32{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}

// ParseUmask returns the permission bits that a umask allows. As in Hadoop, an octal umask has the bits that
// are taken away, and a symbolic one, as u=rwx,g=rx,o=, those that remain. Owners must keep their permissions,
// or a job could not use its own directories.
func ParseUmask(text string) (allowed uint32, err error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "=") {
		allowed, err = parseSymbolic(text)
	} else {
		var taken uint64
		taken, err = strconv.ParseUint(text, 8, 32)
		if taken > 0o777 {
			err = strconv.ErrRange
		}
		allowed = 0o777 &^ uint32(taken)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("umask %q: %w: want octal digits up to 777, or permissions as u=rwx,g=rx,o=", text, fs.ErrInvalid)
	case allowed&0o700 != 0o700:
		return 0, fmt.Errorf("umask %q: %w: it must leave the owner rwx", text, fs.ErrInvalid)
	}
	return allowed, nil
}

func parseSymbolic(text string) (allowed uint32, err error) {
	for clause := range strings.SplitSeq(text, ",") {
		classes, permissions, _ := strings.Cut(clause, "=")
		var who, what uint32
		for _, class := range classes {
			who |= permissionBits[class]
		}
		for _, p := range permissions {
			i := strings.IndexRune("xwr", p)
			if i < 0 {
				return 0, fs.ErrInvalid
			}
			what |= 0o111 << i
		}
		if who == 0 || strings.Trim(classes, "ugoa") != "" {
			return 0, fs.ErrInvalid
		}
		allowed = allowed&^who | what&who
	}
	return allowed, nil
}

// ParseSize returns a number of bytes, which may have Hadoop's suffix k, m, g or t.
func ParseSize(text string) (int64, error) {
	digits, shift := strings.ToLower(strings.TrimSpace(text)), 0
	if n := len(digits) - 1; n > 0 {
		if i := strings.IndexByte("kmgt", digits[n]); i >= 0 {
			digits, shift = digits[:n], 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > 1<<50>>shift {
		return 0, fmt.Errorf("size %q: %w: want a number of bytes, which may end in k, m, g or t", text, fs.ErrInvalid)
	}
	return n << shift, nil
}
