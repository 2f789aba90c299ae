package admission

import (
	"fmt"

	"github.com/quernmr/quern/groups"
	"github.com/quernmr/quern/wire"
)

// Caller is the authenticated user or daemon that makes a request. The zero Caller is any client
// of a cluster without authentication: it may do everything.
type Caller struct {
	Name  string
	Admin bool // may do everything

	// Groups are those of all users at the time of the request: the owner's count, too. nil: groups are
	// not known.
	Groups *groups.Table
}

// Known reports whether the caller is authenticated.
func (c Caller) Known() bool { return c.Name != "" || c.Admin }

// in returns a function that reports whether a user is in a group.
func (c Caller) in(user string) func(group string) bool {
	return func(group string) bool { return c.Groups.Has(group, user) }
}

// owns reports whether the caller may do everything with the jobs of an owner.
func (c Caller) owns(owner string) bool { return !c.Known() || c.Admin || c.Name == owner }

// refusal is the error of a caller that may not do this to the owner's job. acl is the property that
// could allow it; empty: none can.
func (c Caller) refusal(do string, job wire.JobID, owner, acl string) error {
	what, who := fmt.Sprintf("%v, which is %s's", job, owner), owner+" or an administrator"
	if owner == "" {
		what, who = fmt.Sprintf("%v, which has no known owner", job), "an administrator"
	}
	if acl != "" {
		who = fmt.Sprintf("%s, or a user in %s", who, acl)
	}
	return fmt.Errorf("%w: %s cannot %s %s: only %s can", ErrNotAllowed, c.Name, do, what, who)
}
