package testbed

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOwnMemory: the memory of a grandchild counts.
func TestOwnMemory(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `sh -c 'a=$(head -c 30000000 /dev/zero | tr "\\0" x); echo ready; read b'; true`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if got := ownMemory(cmd.Process.Pid); got < 30e6 {
		t.Errorf("%d bytes, want at least 30 MB", got)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestConsumed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	var fs unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(file), &fs); err != nil {
		t.Fatal(err)
	}
	r, err := Consumed(exec.Command("sh", "-c", `dd if=/dev/zero of="$0" bs=64M count=1; true`, file))
	if err != nil {
		t.Fatal(err)
	}
	if onDisk := fs.Type != unix.TMPFS_MAGIC; (r.Written >= 64<<20) != onDisk {
		t.Errorf("%d bytes written, of 64 MiB; on a disk: %v", r.Written, onDisk)
	}
	if r.Elapsed <= 0 || r.Processor <= 0 {
		t.Errorf("%+v", r)
	}
	if _, err := Consumed(exec.Command("sh", "-c", "exit 3")); err == nil {
		t.Error("no error for exit code 3")
	}
}
