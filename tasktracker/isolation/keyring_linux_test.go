package isolation

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/wire"
)

// TestKeyring: a worker can use no keys, also if it has the daemon's user.
func TestKeyring(t *testing.T) {
	skipIfNotPermitted(t)
	if _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true); err != nil {
		t.Skipf("this machine permits no keyrings: %v", err)
	}
	dir := t.TempDir()
	plan, err := (&Config{}).Plan(&Worker{Submission: new(wire.Submission), Dir: filepath.Join(dir, "worker")})
	if err != nil {
		t.Fatal(err)
	}
	from, err := Pipe(plan)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	cmd := exec.Command("true")
	cmd.Env = []string{keyringVariable + "=1"}
	cmd.ExtraFiles = []*os.File{exe, exe, exe}
	cmd.SysProcAttr = new(syscall.SysProcAttr)
	Command(cmd, from, false)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("this machine does not isolate jobs: %s", out)
	}
	if !strings.HasSuffix(string(out), unix.EPERM.Error()) {
		t.Errorf("the worker has the keyring %s", out)
	}
}
