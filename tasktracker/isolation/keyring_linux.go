package isolation

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// leaveKeyring gives this thread a keyring of its own: that of the session may have the daemon's Kerberos tickets. A system
// that forbids this forbids jobs to use keys.
func leaveKeyring() error {
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	switch {
	case errors.Is(err, unix.EDQUOT):
		return fmt.Errorf("leave the session's keyring: too many keys (/proc/sys/kernel/keys/maxkeys): %w", err)
	case err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM):
		return fmt.Errorf("leave the session's keyring: %w", err)
	}
	return nil
}
