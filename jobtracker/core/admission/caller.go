package admission

import (
	"fmt"

	"github.com/quernmr/quern/wire"
)

// Caller is the user or daemon that makes a request, if it has proved its name. The zero
// Caller is any client of a cluster that asks for no proof: it may do everything.
type Caller struct {
	Name  string
	Admin bool // it may do everything
}

// Known says whether it is known who asks.
func (a Caller) Known() bool { return a != Caller{} }

// MayRead reports whether a caller may read the data of an owner's job.
func (a Caller) MayRead(owner string) bool { return !a.Known() || a.Admin || a.Name == owner }

// may says why a caller may not do something to a job of an owner's.
func (a Caller) mayChange(do string, job wire.JobID, owner string) error {
	switch {
	case a.MayRead(owner):
		return nil
	case owner == "":
		return fmt.Errorf("%w: %s cannot %s %v, of which no owner is known: only an administrator can", ErrNotAllowed, a.Name, do, job)
	}
	return fmt.Errorf("%w: %s cannot %s %v, which is %s's: only %s or an administrator can", ErrNotAllowed, a.Name, do, job, owner, owner)
}
