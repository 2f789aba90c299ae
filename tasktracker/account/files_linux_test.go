package account

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownerOf returns the user id of a file itself, not of a link's target.
func ownerOf(t *testing.T, name string) uint32 {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// asRoot skips a test that only root can run. It returns an account, and a directory that it can reach.
func asRoot(t *testing.T) (a *Account, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to other users")
	}
	dir, err := os.MkdirTemp("", "account")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &Account{Name: "ann", UID: 23001, GID: 23002, Groups: []uint32{23003}}, dir
}

func write(t *testing.T, name string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestDo: work for an account has the account's rights and groups, makes its files, and leaves other threads alone.
func TestDo(t *testing.T) {
	a, dir := asRoot(t)
	secret := write(t, dir+"/root/secret")
	ofGroup := write(t, dir+"/group/file")
	if err := errors.Join(os.Chmod(filepath.Dir(secret), 0o770), os.Mkdir(dir+"/own", 0o700), os.Chown(dir+"/own", 23001, 23002),
		os.Chown(ofGroup, 0, 23003), os.Chmod(ofGroup, 0o640)); err != nil {
		t.Fatal(err)
	}
	err := a.Do(func() error {
		if _, err := os.ReadFile(secret); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a file of root: %v", err)
		}
		if err := os.WriteFile(dir+"/file", nil, 0o600); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a directory of root: %v", err)
		}
		_, err := os.ReadFile(ofGroup)
		return errors.Join(err, os.MkdirAll(dir+"/own/a/b", 0o777))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ownerOf(t, dir+"/own/a/b"); got != a.UID {
		t.Errorf("the new directory belongs to %d", got)
	}
	for range 100 { // on whichever threads
		if _, err := os.ReadFile(secret); err != nil {
			t.Fatal(err)
		}
	}
	var none *Account
	if err := none.Do(func() error { _, err := os.ReadFile(secret); return err }); err != nil {
		t.Errorf("without an account: %v", err)
	}
}

// TestMakeDir: the directory and what it had before belong to the account, and others cannot use it.
func TestMakeDir(t *testing.T) {
	a, dir := asRoot(t)
	earlier := write(t, dir+"/jobs/job/home-00000/run")
	outside := write(t, dir+"/outside")
	if err := os.Symlink(outside, dir+"/jobs/job/link"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.MakeDir(dir + "/jobs/job"); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{dir + "/jobs/job", filepath.Dir(earlier), earlier, dir + "/jobs/job/link"} {
		if got := ownerOf(t, name); got != a.UID {
			t.Errorf("%s belongs to %d", name, got)
		}
	}
	if info, err := os.Stat(dir + "/jobs/job"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if ownerOf(t, outside) != 0 || ownerOf(t, dir+"/jobs") != 0 {
		t.Error("a file outside of the directory is given away")
	}
	other := &Account{Name: "bob", UID: 23009, GID: 23009}
	if err := other.MakeDir(dir + "/jobs/job"); err == nil || !strings.Contains(err.Error(), "belongs to user 23001") {
		t.Errorf("the directory of another account: %v", err)
	}
}

// TestGive: a directory that this process made is given with all in it. Nothing is given that may be another's: a
// link, a file with a second name, or a directory that others can write.
func TestGive(t *testing.T) {
	a, dir := asRoot(t)
	file := write(t, dir+"/good/sub/file")
	if err := a.Give(dir + "/good"); err != nil {
		t.Fatal(err)
	}
	if ownerOf(t, file) != a.UID || ownerOf(t, dir+"/good") != a.UID {
		t.Error("not all is given")
	}
	if err := a.Give(dir + "/good"); err != nil {
		t.Errorf("a second time: %v", err)
	}
	secret := write(t, dir+"/secret")
	for name, prepare := range map[string]func(at string) error{
		"is not a directory":    func(at string) error { return os.Symlink(dir, at) },
		"has 2 names":           func(at string) error { return errors.Join(os.Mkdir(at, 0o700), os.Link(secret, at+"/file")) },
		"other users can write": func(at string) error { return errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, 0o777)) },
		"belongs to user 23009": func(at string) error { return errors.Join(os.Mkdir(at, 0o700), os.Chown(at, 23009, 0)) },
	} {
		at := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := prepare(at); err != nil {
			t.Fatal(err)
		}
		if err := a.Give(at); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if ownerOf(t, secret) != 0 || ownerOf(t, dir) != 0 {
		t.Error("a file of root is given away")
	}
}

// TestGiveBelow: a directory is given only if all directories around it are kept from other users, and if it is
// itself no link. Nothing else is given.
func TestGiveBelow(t *testing.T) {
	a, top := asRoot(t)
	secret := write(t, top+"/secret/file")
	outside := filepath.Dir(secret)
	const dir = "sessions/ann~s/results"
	for name, prepare := range map[string]func(root string) error{
		"":                              func(root string) error { return os.Mkdir(root+"/"+dir+"/1", 0o700) },
		"results belongs to user 23009": func(root string) error { return os.Chown(root+"/"+dir, 23009, 0) },
		"results is not a directory": func(root string) error {
			return errors.Join(os.Remove(root+"/"+dir), os.Symlink(outside, root+"/"+dir))
		},
		"results: no such file": func(root string) error { return os.Remove(root + "/" + dir) },
		"results/1 has 2 names": func(root string) error { return os.Link(secret, root+"/"+dir+"/1") },
		"ann~s is not a directory": func(root string) error {
			return errors.Join(os.RemoveAll(root+"/sessions/ann~s"), os.Symlink(top, root+"/sessions/ann~s"))
		},
		"ann~s belongs to user 23001":     func(root string) error { return os.Chown(root+"/sessions/ann~s", 23001, 0) },
		"other users can write":           func(root string) error { return os.Chmod(root+"/sessions", 0o777) },
		"sessions belongs to user 23009":  func(root string) error { return os.Chown(root+"/sessions", 23009, 0) },
		"staging-8 belongs to user 23009": func(root string) error { return os.Chown(root, 23009, 0) },
	} {
		root := filepath.Join(top, "staging-8")
		if err := errors.Join(os.RemoveAll(root), os.MkdirAll(filepath.Join(root, dir), 0o700), os.Mkdir(top+"/results", 0o700)); err != nil {
			t.Fatal(err)
		}
		if err := prepare(root); err != nil {
			t.Fatal(err)
		}
		err := a.GiveBelow(root, dir)
		if name == "" {
			if err != nil || ownerOf(t, filepath.Join(root, dir, "1")) != a.UID || ownerOf(t, filepath.Join(root, dir)) != a.UID || ownerOf(t, root+"/sessions/ann~s") != 0 {
				t.Errorf("the results are not given, or more is: %v", err)
			}
			err = a.GiveBelow(root, dir)
		}
		if (err == nil) != (name == "") || err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		if ownerOf(t, secret) != 0 || ownerOf(t, outside) != 0 || ownerOf(t, top+"/results") != 0 {
			t.Errorf("%s: a file of root is given away", name)
		}
		if err := os.Remove(top + "/results"); err != nil {
			t.Fatal(err)
		}
	}
}
