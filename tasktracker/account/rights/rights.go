// Package rights gives a thread of root the rights of another user. It imports little, because package enter
// uses it before other packages are initialised.
package rights

// User is a user of this machine, with groups.
type User struct {
	UID    uint32
	GID    uint32
	Groups []uint32 // further ones
}
