package rights

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Enter lets this thread, which must be locked, use files with the rights of the user. Leave ends that.
func (u *User) Enter() error {
	return setAccess(u.UID, u.GID, u.Groups)
}

// Leave gives this thread the rights of root again, but no further groups.
func (u *User) Leave() error { return setAccess(0, 0, nil) }

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

// Become gives this process, all of its threads, the user and groups of the user, for ever.
func (u *User) Become() error {
	groups := make([]int, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = int(g)
	}
	if err := unix.Setgroups(groups); err != nil {
		return fmt.Errorf("set the groups of user %d: %w", u.UID, err)
	}
	if err := unix.Setresgid(int(u.GID), int(u.GID), int(u.GID)); err != nil {
		return fmt.Errorf("become group %d: %w", u.GID, err)
	}
	if err := unix.Setresuid(int(u.UID), int(u.UID), int(u.UID)); err != nil {
		return fmt.Errorf("become user %d: %w", u.UID, err)
	}
	return nil
}
