package enter

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Keys of the system, such as Kerberos tickets and keys of file systems, belong to users, not to namespaces. So a program with
// the daemon's user could find and use them.

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

// compat has the 32-bit architecture that also runs here, and the number of its call add_key.
var compat = map[string]struct{ arch, addKey uint32 }{
	"amd64": {unix.AUDIT_ARCH_I386, 286},
	"arm64": {unix.AUDIT_ARCH_ARM, 309},
}[runtime.GOARCH]

// forbidKeys takes the three system calls for keys from this thread, and from what it executes: add_key, request_key and keyctl
// have successive numbers everywhere.
func forbidKeys() error {
	const (
		number, arch = 0, 4       // offsets in the data of a call
		withoutX32   = 0xbfffffff // the other bit marks calls of x32 programs
		load         = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		and          = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
		equal        = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		least        = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		above        = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
		result       = unix.BPF_RET | unix.BPF_K
	)
	filter := []unix.SockFilter{
		{Code: load, K: arch},
		{Code: equal, K: compat.arch, Jf: 4},
		{Code: load, K: number},
		{Code: and, K: withoutX32},
		{Code: least, K: compat.addKey, Jf: 5},
		{Code: above, K: compat.addKey + 2, Jt: 4, Jf: 5},
		{Code: load, K: number},
		{Code: and, K: withoutX32},
		{Code: least, K: unix.SYS_ADD_KEY, Jf: 1},
		{Code: above, K: unix.SYS_ADD_KEY + 2, Jf: 1},
		{Code: result, K: unix.SECCOMP_RET_ALLOW},
		{Code: result, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0)
}
