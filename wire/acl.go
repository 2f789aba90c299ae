package wire

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The properties with a job's ACLs, in Hadoop's syntax, see [ParseACL].
const (
	ViewACL   = "mapreduce.job.acl-view-job"
	ModifyACL = "mapreduce.job.acl-modify-job"
)

// RedactedProperties is the property that lists names of properties. Their values are hidden, also from those who may
// see the job.
const RedactedProperties = "mapreduce.job.redacted-properties"

// MaxACL is the maximum bytes of a job's ACL: job trackers keep it as long as the job.
const MaxACL = 4 << 10

// ACL lists who may do something, beside those who always may.
type ACL struct {
	All    bool
	Users  []string
	Groups []string // see package groups
}

// maxACLName is the maximum bytes of the name of a user or group.
const maxACLName = 200

// CheckACLName fails if a user or group cannot have a name: it would be unclear in an ACL or in a log.
func CheckACLName(name string) error {
	strange := func(c rune) bool { return c == ' ' || c == ',' || c == utf8.RuneError || !unicode.IsPrint(c) }
	if name == "" || name == "*" || len(name) > maxACLName || strings.ContainsFunc(name, strange) {
		return fmt.Errorf("name %.*q: want 1 to %d bytes without spaces, commas and control characters, and not *", maxACLName+10, name, maxACLName)
	}
	return nil
}

// ParseACL reads Hadoop's syntax: users separated by commas, a blank, groups separated by commas. "*"
// is all users. A blank text is no user.
func ParseACL(text string) (ACL, error) {
	if len(text) > MaxACL {
		return ACL{}, fmt.Errorf("it has %d bytes, at most %d", len(text), MaxACL)
	}
	if strings.TrimSpace(text) == "*" {
		return ACL{All: true}, nil
	}
	users, groups, _ := strings.Cut(text, " ")
	groups = strings.TrimSpace(groups)
	if strings.ContainsAny(groups, " \t\n") || strings.ContainsAny(users, "\t\n") {
		return ACL{}, errors.New("it has more than two lists: want users separated by commas, a blank, and groups separated by commas")
	}
	a := ACL{Users: names(users), Groups: names(groups)}
	if slices.Contains(a.Users, "*") || slices.Contains(a.Groups, "*") {
		return ACL{}, errors.New("* stands for all users only without other names")
	}
	for _, name := range slices.Concat(a.Users, a.Groups) {
		if err := CheckACLName(name); err != nil {
			return ACL{}, err
		}
	}
	return a, nil
}

func names(list string) (all []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// Admits reports whether the ACL lists a user, or a group that the user is in.
func (a *ACL) Admits(user string, in func(group string) bool) bool {
	return user != "" && (a.All || slices.Contains(a.Users, user) || slices.ContainsFunc(a.Groups, in))
}

// Access is who may see the details of a job, beside its owner and the cluster's administrators.
type Access struct {
	View           string // an ACL; a damaged one is no user
	Administrators ACL    // of the job's pool
}
