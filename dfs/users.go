package dfs

import "strings"

// Users is implemented by file systems with users, such as HDFS. A process may act as
// other users there, as far as the servers allow it.
type Users interface {
	// ActAs returns the file system as another user sees it; an empty user is the process's own. All
	// calls with a user return the same one.
	ActAs(user string) FS

	// ActOnceAs is ActAs, and keeps nothing after done.
	ActOnceAs(user string) (f FS, done func())

	// Owner returns the short name of the owner of a file or directory.
	Owner(name string) (string, error)

	// Share makes a directory unless it exists, and adds permissions to it: bits of Unix, such as 01777. If it
	// belongs to another user, the error is fs.ErrPermission.
	Share(name string, bits uint32) error

	// MakeOwn makes a directory of mode 0700 that belongs to the process's user. It may exist, with
	// another mode. If it belongs to another user, the error is fs.ErrPermission.
	MakeOwn(name string) error
}

// UsersOf returns the users of the file system that has a name; nil: it has none.
func UsersOf(f FS, name string) Users {
	if m, ok := f.(Mux); ok {
		f, _ = m.fsFor(name)
	}
	users, _ := f.(Users)
	return users
}

// ActingAs returns the file system that has a name as a user sees it. If it knows no users, or the user
// is empty, it returns f.
func ActingAs(f FS, name, user string) FS {
	if users := UsersOf(f, name); users != nil && user != "" {
		return users.ActAs(user)
	}
	return f
}

// ShortName returns a user's name without host and realm. It is the name of the owner of their files,
// unless hadoop.security.auth_to_local of HDFS says otherwise.
func ShortName(user string) string {
	if i := strings.IndexAny(user, "/@"); i > 0 {
		return user[:i]
	}
	return user
}
