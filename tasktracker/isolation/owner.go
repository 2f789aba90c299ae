package isolation

import (
	"errors"
	"fmt"

	"github.com/quernmr/quern/tasktracker/account"
)

// ofOther returns an error if a job's directory could not be made as it belongs to another account. With another error the
// disk is bad, and no attempt starts there.
func ofOther(err error) error {
	if other, ok := errors.AsType[*account.OwnerError](err); ok {
		return fmt.Errorf("the job has run here with another account (has the map of accounts changed?): %w", other)
	}
	return nil
}
