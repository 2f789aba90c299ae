package enter

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// scopeSockets keeps this thread, and what it executes, from abstract sockets of programs outside. They have names in the network's
// namespace, which is the machine's. Nothing changes on systems that cannot do it: before Linux 6.12, without Landlock, or with a
// filter of system calls that does not know it.
func scopeSockets() error {
	scope := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	rules, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&scope)), unsafe.Sizeof(scope), 0)
	switch errno {
	case 0:
	case unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.E2BIG, unix.EPERM:
		return nil
	default:
		return errno
	}
	defer unix.Close(int(rules))
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, rules, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
