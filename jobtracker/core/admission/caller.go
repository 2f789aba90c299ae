package admission

import (
	"fmt"

	"github.com/quernmr/quern/wire"
)

// Caller is the authenticated user or daemon that makes a request. The zero Caller is any client
// of a cluster without authentication: it may do everything.
type Caller struct {
	Name  string
	Admin bool // may do everything
}

// Known reports whether the caller is authenticated.
func (c Caller) Known() bool { return c != Caller{} }

// MayRead reports whether the caller may read the data of this owner's jobs.
func (c Caller) MayRead(owner string) bool { return !c.Known() || c.Admin || c.Name == owner }

// authorize returns an error if the caller may not do this to the owner's job.
func (c Caller) authorize(do string, job wire.JobID, owner string) error {
	switch {
	case c.MayRead(owner):
		return nil
	case owner == "":
		return fmt.Errorf("%w: %s cannot %s %v, which has no known owner: only an administrator can", ErrNotAllowed, c.Name, do, job)
	}
	return fmt.Errorf("%w: %s cannot %s %v, which is %s's: only %s or an administrator can", ErrNotAllowed, c.Name, do, job, owner, owner)
}
