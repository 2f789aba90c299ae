package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestAdvertised(t *testing.T) {
	for _, c := range []struct{ advertise, listening, want string }{
		{"", "127.0.0.1:7", "127.0.0.1:7"},
		{"", "localhost:7", "localhost:7"},
		{"host", "0.0.0.0:7", "host:7"},
		{"host:8", "0.0.0.0:7", "host:8"},
		{"host:0", ":7", "host:7"},
		{"::1", "[::]:7", "[::1]:7"},
		{"[::1]:8", "[::]:7", "[::1]:8"},
		{"", "0.0.0.0:7", ""},
		{"", ":7", ""},
		{"", "[::]:7", ""},
		{"0.0.0.0:8", "127.0.0.1:7", ""},
		{":8", "127.0.0.1:7", ""},
		{"host:http", "127.0.0.1:7", ""},
	} {
		got, err := Advertised("-advertise", c.advertise, c.listening)
		switch {
		case c.want == "" && !errors.Is(err, ErrUsage):
			t.Errorf("%q of %s: %s, %v", c.advertise, c.listening, got, err)
		case c.want != "" && (err != nil || got != c.want):
			t.Errorf("%q of %s: %s, %v, not %s", c.advertise, c.listening, got, err, c.want)
		}
	}
}

func TestSecurity(t *testing.T) {
	for _, c := range []struct {
		listen   string
		security Security
		want     string
	}{
		{"127.0.0.1:0", Security{}, ""},
		{"127.9.9.9:0", Security{}, ""},
		{"[::1]:0", Security{}, ""},
		{"localhost:0", Security{}, ""},
		{"0.0.0.0:0", Security{}, "-insecure"},
		{"[::]:0", Security{}, "-insecure"},
		{":0", Security{}, "-insecure"},
		{"192.0.2.1:0", Security{}, "-insecure"},
		{"192.0.2.1:0", Security{Insecure: true}, ""},
		{"192.0.2.1:0", Security{TLSDir: "x"}, ""},
		{"127.0.0.1:0", Security{TLSDir: "x", Insecure: true}, "one or the other"},
		{"127.0.0.1", Security{}, "-listen"},
		{"127.0.0.1:70000", Security{}, "port"},
	} {
		err := c.security.Check([]string{"-listen"}, []string{c.listen})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s %+v: %v", c.listen, c.security, err)
		case c.want != "" && (!errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s %+v: %v", c.listen, c.security, err)
		}
	}
}

// TestWarnIfReadable: a directory that other users can read is logged.
func TestWarnIfReadable(t *testing.T) {
	dir := t.TempDir()
	for mode, warned := range map[os.FileMode]bool{0o700: false, 0o750: true, 0o711: true, 0o755: true} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		WarnIfReadable(slog.New(slog.NewTextHandler(&log, nil)), dir)
		if got := strings.Contains(log.String(), dir) && strings.Contains(log.String(), "chmod 700"); got != warned {
			t.Errorf("%v: it logged %q", mode, &log)
		}
	}
	var log bytes.Buffer
	if WarnIfReadable(slog.New(slog.NewTextHandler(&log, nil)), filepath.Join(dir, "none")); log.Len() > 0 {
		t.Errorf("for a missing directory it logged %q", &log)
	}
}

func TestSplitList(t *testing.T) {
	if got := SplitList(" a:1, b:2,,c:3 ,"); !slices.Equal(got, []string{"a:1", "b:2", "c:3"}) {
		t.Errorf("%q", got)
	}
	if got := SplitList(""); got != nil {
		t.Errorf("%q", got)
	}
}

// TestWithHint: errors of listening get a remedy with the flag. Other errors stay unchanged.
func TestWithHint(t *testing.T) {
	listen := func(err syscall.Errno) error {
		return fmt.Errorf("start: %w", &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", err)})
	}
	for _, c := range []struct {
		flag string
		err  error
		want string
	}{
		{"-gossip", errors.New("gossip at h:1: failed to start UDP listener: bind: address already in use"), "another port with -gossip"},
		{"-raft", listen(syscall.EADDRNOTAVAIL), "with -raft-advertise"},
		{"-listen", listen(syscall.EADDRNOTAVAIL), "with -advertise"},
		{"-listen", listen(syscall.EACCES), "another one with -listen"},
		{"-listen", errors.New("the disk is full"), ""},
		{"-raft", &fs.PathError{Op: "open", Path: "/data/raft", Err: syscall.EACCES}, ""},
	} {
		err := WithHint(c.flag, c.err)
		if !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), c.err.Error()) || !strings.Contains(err.Error(), c.want) || c.want == "" && err != c.err {
			t.Errorf("%s: %v, want %q", c.flag, err, c.want)
		}
	}
	if err := WithHint("-listen", nil); err != nil {
		t.Error(err)
	}
}
