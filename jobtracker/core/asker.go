package core

import (
	"errors"
	"fmt"

	"github.com/quernmr/quern/wire"
)

// ErrNotAllowed answers what only others may ask for.
var ErrNotAllowed = errors.New("not allowed")

// Asker is who asks for something, where he has proved that. The zero Asker may be
// anybody: nobody has to prove anything, and everybody may do everything.
type Asker struct {
	Name  string
	Admin bool // he may do everything
}

// Known says whether it is known who asks.
func (a Asker) Known() bool { return a != Asker{} }

// MayHave says whether somebody may see what is for a job's owner alone.
func (a Asker) MayHave(owner string) bool { return !a.Known() || a.Admin || a.Name == owner }

// may says why somebody may not do something to a job of an owner's.
func (a Asker) may(do string, job wire.JobID, owner string) error {
	switch {
	case a.MayHave(owner):
		return nil
	case owner == "":
		return fmt.Errorf("%w: %s cannot %s %v, of which no owner is known: only an administrator can", ErrNotAllowed, a.Name, do, job)
	}
	return fmt.Errorf("%w: %s cannot %s %v, which is %s's: only %s or an administrator can", ErrNotAllowed, a.Name, do, job, owner, owner)
}
