package enter

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLeaveKeyring: the helper leaves the keyring of the daemon's session.
func TestLeaveKeyring(t *testing.T) {
	runtime.LockOSThread() // the thread ends with the test
	before, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
	if err != nil {
		t.Skipf("this machine permits no keyrings: %v", err)
	}
	if err := leaveKeyring(); err != nil {
		t.Fatal(err)
	}
	if after, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); err != nil || after == before {
		t.Errorf("the keyring is %d, %v, as before", after, err)
	}
}

// TestForbidKeys: the filter forbids the three calls for keys, and not those before and after them.
func TestForbidKeys(t *testing.T) {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := forbidKeys(); err != nil {
		t.Fatal(err)
	}
	for call := uintptr(unix.SYS_ADD_KEY) - 1; call <= unix.SYS_KEYCTL+1; call++ {
		_, _, errno := unix.RawSyscall6(call, ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0), ^uintptr(0))
		if isKeys := unix.SYS_ADD_KEY <= call && call <= unix.SYS_KEYCTL; (errno == unix.EPERM) != isKeys {
			t.Errorf("call %d: %v", call, errno)
		}
	}
}
