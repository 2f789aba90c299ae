package account

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Do calls f, which opens files with the rights of the account, not with root's. It calls f on a new goroutine
// and thread, which end with f. Goroutines and processes that f starts have root's rights. A nil account changes nothing.
func (a *Account) Do(f func() error) error {
	if a == nil {
		return f()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocks: the thread ends with this goroutine
		err := a.Enter()
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// Enter lets this thread, which must be locked, use files with the rights of the account. Leave ends that.
func (a *Account) Enter() error {
	return setAccess(a.UID, a.GID, a.Groups)
}

// Leave gives this thread the rights of root again, but no further groups.
func (a *Account) Leave() error { return setAccess(0, 0, nil) }

// setAccess changes the user and groups of this thread alone, for files alone: unlike the effective user, they give no
// process the right to signal this one. Without user 0, the system ignores the thread's capabilities for files.
func setAccess(uid, gid uint32, groups []uint32) error {
	if strconv.IntSize < 64 {
		return errors.New("other users' rights need a 64-bit system") // setgroups has 16-bit numbers there
	}
	// Not unix.Setgroups: it changes all threads.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(unsafe.SliceData(groups))), 0); errno != 0 {
		return fmt.Errorf("use the groups of user %d: %w", uid, errno)
	}
	if err := setGroup(gid); err != nil {
		return err
	}
	return setUser(uid)
}

// unchanged is an id that no user or group has: the system returns the present one.
const unchanged = -1

func setUser(uid uint32) error {
	_, _ = unix.SetfsuidRetUid(int(uid)) // it reports no failure
	if now, _ := unix.SetfsuidRetUid(unchanged); now != int(uid) {
		return fmt.Errorf("use files as user %d: %w", uid, unix.EPERM)
	}
	return nil
}

func setGroup(gid uint32) error {
	_, _ = unix.SetfsgidRetGid(int(gid))
	if now, _ := unix.SetfsgidRetGid(unchanged); now != int(gid) {
		return fmt.Errorf("use files as group %d: %w", gid, unix.EPERM)
	}
	return nil
}

// Become gives this process, all of its threads, the user and groups of the account, for ever.
func (a *Account) Become() error {
	groups := make([]int, len(a.Groups))
	for i, g := range a.Groups {
		groups[i] = int(g)
	}
	if err := unix.Setgroups(groups); err != nil {
		return fmt.Errorf("set the groups of user %d: %w", a.UID, err)
	}
	if err := unix.Setresgid(int(a.GID), int(a.GID), int(a.GID)); err != nil {
		return fmt.Errorf("become group %d: %w", a.GID, err)
	}
	if err := unix.Setresuid(int(a.UID), int(a.UID), int(a.UID)); err != nil {
		return fmt.Errorf("become user %d: %w", a.UID, err)
	}
	return nil
}
