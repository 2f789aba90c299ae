package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// driveAsProgram is what the test binary does as a program that drives jobs: it runs two jobs at once,
// kills one of them, and prints their ends.
func driveAsProgram() {
	in, out := os.NewFile(3, "in"), os.NewFile(4, "out")
	conn := wire.NewConn(in, out, func() error { return errors.Join(in.Close(), out.Close()) })
	send := func(m wire.Message) {
		if err := conn.Send(m); err != nil {
			panic(err)
		}
	}
	protocol := wire.DriveProtocol
	if len(os.Args) > 1 && os.Args[1] == "old" {
		protocol--
	}
	send(&wire.DriveHello{Protocol: protocol})
	m, err := conn.Receive()
	if err != nil {
		os.Exit(3)
	}
	os.Stdout.WriteString("sessions in " + m.(*wire.DriveBegin).Sessions + "\n")
	for run := range 2 {
		send(&wire.DriveRun{Run: run, Submission: wire.Submission{Key: []string{"hangs", "ends"}[run]}})
	}
	for range 2 {
		m, err := conn.Receive()
		if err != nil {
			panic(err)
		}
		ended := m.(*wire.DriveEnded)
		if ended.Run == 1 {
			os.Stdout.WriteString("ended with " + ended.Jobs[0].State.String() + "\n")
			send(&wire.DriveKill{Run: 0})
			continue
		}
		os.Stdout.WriteString("killed: " + ended.Error + "\n")
	}
	os.Exit(4)
}

// TestDrive: a client runs the jobs of a program at the same time, kills one when the program says so, and
// returns the program's exit code.
func TestDrive(t *testing.T) {
	run := func(args ...string) (int, string, error) {
		var stdout bytes.Buffer
		code, err := Drive(t.Context(), Driven{
			Program: self(t), Args: args, Sessions: "mem://t/sessions", Stdout: &stdout, Stderr: io.Discard,
			Run: func(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
				if sub.Key == "hangs" {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return []wire.EndedJob{{State: wire.Succeeded}}, nil
			},
		})
		return code, stdout.String(), err
	}
	code, printed, err := run()
	if want := "sessions in mem://t/sessions\nended with succeeded\nkilled: the program that drives the job killed it\n"; code != 4 || err != nil || printed != want {
		t.Errorf("exit code %d, %v, %q", code, err, printed)
	}
	if code, printed, err := run("old"); code != 3 || printed != "" || err == nil || !strings.Contains(err.Error(), "speaks drive protocol 0") {
		t.Errorf("another protocol: exit code %d, %v, %q", code, err, printed)
	}
}

func self(t *testing.T) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}
