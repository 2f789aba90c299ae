package userstate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

func TestDir(t *testing.T) {
	for _, c := range []struct {
		state, home string
		want        string // the directory, or a part of the error
	}{
		{"/s", "/h", "/s/quern"},
		{"", "/h", "/h/.local/state/quern"},
		{"", "", "neither XDG_STATE_HOME nor HOME is set"},
		{"s", "/h", `XDG_STATE_HOME is "s": want an absolute path`},
		{"", "h", `HOME is "h": want an absolute path`},
	} {
		getenv := env(map[string]string{"XDG_STATE_HOME": c.state, "HOME": c.home})
		dir, err := Dir(getenv)
		data, dataErr := DataDir(getenv, identity.JobTracker, "jt1")
		switch {
		case err == nil && (dir != c.want || data != c.want+"/data/jobtracker-jt1" || dataErr != nil):
			t.Errorf("%+v: %s and %s, %v", c, dir, data, dataErr)
		case err != nil && (!strings.Contains(err.Error(), c.want) || dataErr == nil):
			t.Errorf("%+v: %v, %v", c, err, dataErr)
		}
	}
}

// TestAuthority: the first process makes the authority below the home directory, which may be behind
// a link, and others use the same one.
func TestAuthority(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, values := range []map[string]string{{"HOME": home}, {"XDG_STATE_HOME": filepath.Join(home, ".local", "state")}} {
		id, err := Identity(env(values), identity.Peer{Role: identity.Client, Name: User()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if id.Peer().Name != User() || identity.CheckName(User()) != nil {
			t.Errorf("%v", id.Peer())
		}
	}
	names, err := filepath.Glob(filepath.Join(home, ".local/state/quern/*"))
	if err != nil || len(names) != 1 || filepath.Base(names[0]) != "authority" {
		t.Errorf("made %q, %v", names, err)
	}
	if info, err := os.Stat(names[0]); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestRefused: a directory that is not this user's alone is refused, and nothing is written.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(home string) error
		state   bool // XDG_STATE_HOME instead of HOME
		want    string
	}{
		"no home":             {os.RemoveAll, false, "no such file"},
		"a sticky home":       {func(home string) error { return os.Chmod(home, 0o777|os.ModeSticky) }, false, "other users can write to"},
		"a writable home":     {func(home string) error { return os.Chmod(home, 0o775) }, false, "other users can write to"},
		"a sticky state home": {func(home string) error { return os.Chmod(home, 0o777|os.ModeSticky) }, true, "other users can write to"},
		"a writable directory of Quern": {func(home string) error {
			dir := filepath.Join(home, "quern")
			return firstError(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o770))
		}, true, "other users can write to"},
		"a writable authority": {func(home string) error {
			dir := filepath.Join(home, "quern", "authority")
			return firstError(os.MkdirAll(dir, 0o700), os.Chmod(dir, 0o770))
		}, true, ""}, // it is empty, so it is replaced
		"a file instead": {func(home string) error {
			return os.WriteFile(filepath.Join(home, "quern"), nil, 0o600)
		}, true, "not a directory"},
	} {
		above := t.TempDir()
		home := filepath.Join(above, "home")
		// Other users can enter the directories above, so that modes are checked.
		if err := firstError(os.Chmod(filepath.Dir(above), 0o755), os.Chmod(above, 0o755), os.Mkdir(home, 0o755), c.prepare(home)); err != nil {
			t.Fatal(err)
		}
		values := map[string]string{"HOME": home}
		if c.state {
			values = map[string]string{"XDG_STATE_HOME": home}
		}
		_, err := Authority(env(values))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestForeignHome: root does not use the home of another user, as with sudo, and neither does a user.
func TestForeignHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(home, 12345, -1); err != nil {
			t.Fatal(err)
		}
	} else {
		home = "/" // it is root's
	}
	for _, variable := range []string{"HOME", "XDG_STATE_HOME"} {
		_, err := Authority(env(map[string]string{variable: home}))
		if err == nil || !strings.Contains(err.Error(), "belongs to user") || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s=%s: %v", variable, home, err)
		}
	}
	if os.Geteuid() == 0 {
		if names, err := os.ReadDir(home); err != nil || len(names) > 0 {
			t.Errorf("made %v, %v", names, err)
		}
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
