package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, name string) (all []Event) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for one := range bytes.Lines(text) {
		var x Event
		if err := json.Unmarshal(one, &x); err != nil {
			t.Fatalf("%q: %v", one, err)
		}
		all = append(all, x)
	}
	return all
}

// TestLines: each event is one line, whatever texts it has, and only the owner can read the file.
func TestLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit")
	for range 2 { // the second process appends
		l, err := Open(name, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		l.Record(Event{Who: "client ann", From: "h:1", Action: "kill", On: "job_1_0001\n{\x1b[2J", Outcome: Refused, Reason: strings.Repeat("x", 1<<20)})
		l.Close()
		l.Record(Event{}) // has no effect
		l.Close()
	}
	all := read(t, name)
	if len(all) != 2 || all[0].On != "job_1_0001\n{\x1b[2J" || len(all[1].Reason) > maxText+50 || all[0].Time.IsZero() {
		t.Errorf("%.200v", all)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	(*Log)(nil).Record(Event{})
	(*Log)(nil).Close()
	if _, err := Open(filepath.Join(name, "no", "directory"), nil); err == nil || !strings.Contains(err.Error(), "audit log: ") {
		t.Error(err)
	}
}

// TestRotation: at the limit files are renamed, the oldest is removed, and no line is torn.
func TestRotation(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit")
	l := newLog(name, 500, slog.New(slog.DiscardHandler))
	go l.writeAll()
	for i := range 100 {
		l.Record(Event{Action: "kill", On: fmt.Sprint(i)})
	}
	l.Close()
	next := 99
	for _, file := range []string{name, name + ".1", name + ".2", name + ".3", name + ".4"} {
		info, err := os.Stat(file)
		if err != nil || info.Size() > 500 {
			t.Errorf("%s: %v, %v", file, info.Size(), err)
		}
		all := read(t, file)
		for i := len(all) - 1; i >= 0; i-- {
			if all[i].On != fmt.Sprint(next) {
				t.Fatalf("%s has %s, want %d", file, all[i].On, next)
			}
			next--
		}
	}
	if _, err := os.Stat(name + ".5"); err == nil || next < 0 {
		t.Errorf("all %d events are kept: %v", 100, err)
	}
}

// TestRenamed: if another program renames the file, the next event makes a new one.
func TestRenamed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit")
	l := newLog(name, 1<<20, slog.New(slog.DiscardHandler))
	l.write(Event{On: "1"})
	if err := os.Rename(name, name+".old"); err != nil {
		t.Fatal(err)
	}
	l.write(Event{On: "2"})
	if a, b := read(t, name+".old"), read(t, name); len(a) != 1 || len(b) != 1 || a[0].On != "1" || b[0].On != "2" {
		t.Errorf("%v, %v", a, b)
	}
	l.file.Close()
}

// TestFullDisk: Record never waits. Lost events are counted, and an error is logged once.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	name := filepath.Join(dir, "audit")
	var logged bytes.Buffer
	l := newLog(name, 1<<20, slog.New(slog.NewTextHandler(&logged, nil)))
	for range 3 {
		l.write(Event{}) // there is no directory
	}
	if n := strings.Count(logged.String(), "events are lost"); n != 1 {
		t.Errorf("logged %d times: %s", n, &logged)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range queueLength + 7 { // no goroutine writes yet
		l.Record(Event{Action: "kill"})
	}
	go l.writeAll()
	l.Close()
	all := read(t, name)
	if len(all) != queueLength+1 || all[1].Action != "lost" || !strings.Contains(all[1].Reason, "7 events") {
		t.Errorf("%d lines, the second is %v", len(all), all[1])
	}
	if !strings.Contains(logged.String(), "is written again") {
		t.Errorf("logged is %s", &logged)
	}
}

// TestNarrowed: a log that other users can read is narrowed: at the start, with its rotated files, and
// when another program has made a new file.
func TestNarrowed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "audit")
	wide := func(name string) {
		t.Helper()
		if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o664); err != nil {
			t.Fatal(err)
		}
	}
	check := func(name string) {
		t.Helper()
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	wide(name)
	wide(name + ".4")
	elsewhere := filepath.Join(t.TempDir(), "kept") // also if the log, and so its rotated files, are links
	wide(elsewhere)
	if err := os.Symlink(elsewhere, name+".3"); err != nil {
		t.Fatal(err)
	}
	var logged bytes.Buffer
	l, err := Open(name, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	check(name)
	check(name + ".4")
	check(elsewhere)
	l.Record(Event{On: "1"})
	l.Close()
	if n := strings.Count(logged.String(), "other users had access"); n != 3 || !strings.Contains(logged.String(), name+".4") {
		t.Errorf("logged is %s", &logged)
	}
	l = newLog(name, 1<<20, slog.New(slog.DiscardHandler))
	l.write(Event{On: "2"})
	if err := os.Rename(name, name+".old"); err != nil {
		t.Fatal(err)
	}
	wide(name) // as logrotate with create 664
	l.write(Event{On: "3"})
	check(name)
	l.file.Close()
	if all := read(t, name); len(all) != 2 || all[1].On != "3" {
		t.Errorf("%v", all)
	}
}
