package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// newSkipping starts an attempt that skips ranges, in a directory.
func newSkipping(t *testing.T, dir string, bounds ...int64) *skipping {
	t.Helper()
	return newSkippingIn(t, t.Context(), dir, bounds...)
}

func newSkippingIn(t *testing.T, ctx context.Context, dir string, bounds ...int64) *skipping {
	t.Helper()
	a := &attempt{cmd: &wire.Run{Dir: dir, Skip: &wire.Skip{}}, task: &Task{Ctx: ctx}}
	for i := 0; i < len(bounds); i += 2 {
		a.cmd.Skip.Ranges = append(a.cmd.Skip.Ranges, wire.RecordRange{From: bounds[i], To: bounds[i+1]})
	}
	if err := a.startSkipping(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.skip.close(); err != nil {
			t.Error(err)
		}
	})
	return a.skip
}

// TestPosition: another process can read at any time which record an attempt is in.
func TestPosition(t *testing.T) {
	dir := t.TempDir()
	s := newSkipping(t, dir, 4, 5, 1, 3, 2, 3)
	file := filepath.Join(dir, positionName)
	got := fmt.Sprint(ReadPosition(file))
	for range 7 {
		got += fmt.Sprint(" ", s.begin(), ReadPosition(file))
	}
	s.end()
	got += fmt.Sprint(" ", ReadPosition(file))
	if want := "0 false 1 true 0 true 0 false 4 true 0 false 6 false 7 0"; got != want {
		t.Errorf("positions %q, want %q", got, want)
	}
	if err := os.WriteFile(file, []byte("torn"), 0o666); err != nil {
		t.Fatal(err)
	}
	if n := ReadPosition(file); n != 0 {
		t.Errorf("a damaged file has position %d", n)
	}
	if n := ReadPosition(dir + "/missing"); n != 0 {
		t.Errorf("a missing file has position %d", n)
	}
}

// TestPositionAtTheEnd: code that goes on after the end of its attempt does not move the position. So
// a record that waits for the end is the one that the attempt ended in.
func TestPositionAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	s := newSkippingIn(t, ctx, dir)
	s.begin()
	s.begin()
	cancel()
	s.begin()
	if n := ReadPosition(filepath.Join(dir, positionName)); n != 2 {
		t.Errorf("in the next record: position %d, want 2", n)
	}
	s.end()
	if n := ReadPosition(filepath.Join(dir, positionName)); n != 2 {
		t.Errorf("after all records: position %d, want 2", n)
	}
}

// TestSkipInFormats: in every format the skipped records are left out and written aside, and others
// are counted.
func TestSkipInFormats(t *testing.T) {
	fs := mem.New(blockSize)
	putFile(fs, "mem://t/in/a", []byte("r0\nr<\nr2\nr3\n"))
	putFile(fs, "mem://t/in/b", []byte("\xff\xfe\n"))
	for _, c := range []struct {
		format string
		read   func(*Split) string
		want   string
		aside  []string
	}{
		{formatLines, func(s *Split) (text string) {
			for line := range s.Lines() {
				text += line + " "
			}
			return text
		}, "r0 r3 ", []string{
			`{"number":1,"file":"mem://t/in/a","offset":3,"text":"r<"}`, `{"number":2,"file":"mem://t/in/a","offset":6,"text":"r2"}`,
			`{"number":4,"file":"mem://t/in/b","offset":0,"bytes":"//4="}`,
		}},
		{formatRecords, func(s *Split) (text string) {
			for r := range s.Records(3) {
				text += strings.TrimSpace(string(r)) + " "
			}
			return text
		}, "r0 r3 ", []string{
			`{"number":1,"file":"mem://t/in/a","offset":3,"text":"r<\n"}`, `{"number":2,"file":"mem://t/in/a","offset":6,"text":"r2\n"}`,
			`{"number":4,"file":"mem://t/in/b","offset":0,"bytes":"//4K"}`,
		}},
		{formatFiles, func(s *Split) (text string) {
			for name := range s.Files() {
				text += name + " "
			}
			return text
		}, "mem://t/in/a ", []string{`{"number":1,"file":"mem://t/in/b","bytes":"//4K"}`}},
		{"own", func(s *Split) (text string) {
			for _, chunk := range s.Chunks() {
				f := must(s.Open(chunk))
				for line := range strings.Lines(string(must(io.ReadAll(io.NewSectionReader(f, 0, chunk.Length))))) {
					if more, skip := s.CountRecord(); more && !skip {
						text += strings.TrimSpace(line) + " "
					}
				}
				f.Close()
			}
			s.EndRecords()
			return text
		}, "r0 r3 ", []string{
			`{"number":1,"file":"mem://t/in/a"}`, `{"number":2,"file":"mem://t/in/a"}`, `{"number":4,"file":"mem://t/in/b"}`,
		}},
	} {
		in := wire.InputPlan{Format: c.format, RecordSize: 3}
		chunks := []Chunk{{Path: "mem://t/in/a", Length: 12, Size: 12}, {Path: "mem://t/in/b", Length: 3, Size: 3}}
		s := newSplit(context.Background(), fs, splitEntry{Chunks: chunks}, &in, splitSettings(100), new(pulse))
		s.skip = newSkipping(t, "", 1, 3, 4, 5)
		if got := c.read(s); got != c.want || s.Err() != nil {
			t.Errorf("%s: read %q, %v, want %q", c.format, got, s.Err(), c.want)
		}
		if got := string(s.skip.aside.content()); got != strings.Join(c.aside, "\n")+"\n" {
			t.Errorf("%s: written aside\n%s", c.format, got)
		}
		if n := int64(len(c.aside)); s.skip.records != n || s.records != s.skip.next-n || s.skip.died() != nil {
			t.Errorf("%s: %d skipped of %d, %d read, ended in %v", c.format, s.skip.records, s.skip.next, s.records, s.skip.died())
		}
	}
}

// TestAsideLimits: long records are cut between characters, and the number of records without a
// line is written.
func TestAsideLimits(t *testing.T) {
	var w asideWriter
	w.add(SkippedRecord{Number: 1}, "x"+strings.Repeat("ü", maxAsideRecord))
	n := 1
	for ; w.more == 0; n++ {
		w.add(SkippedRecord{}, strings.Repeat("y", maxAsideRecord))
	}
	w.add(SkippedRecord{}, "z")
	lines := strings.Split(strings.TrimSuffix(string(w.content()), "\n"), "\n")
	var first, last SkippedRecord
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if first.Size != 2*maxAsideRecord+1 || len(first.Text) != maxAsideRecord-1 || !strings.HasSuffix(first.Text, "ü") {
		t.Errorf("a long record has %d bytes, of %d", len(first.Text), first.Size)
	}
	if last.More != 2 || len(lines) != n || len(w.lines) > maxAsideBytes+3*maxAsideRecord {
		t.Errorf("%d lines, the last says that %d are missing", len(lines), last.More)
	}
}

// TestSkipOutdir checks the directory for skipped records.
func TestSkipOutdir(t *testing.T) {
	for value, want := range map[string]string{
		"": "mem://o/_logs/skip", "none": "", " none ": "", "hdfs://nn/skip/": "hdfs://nn/skip", "/a//b/": "file:///a/b", "a/b": "error", "nonesuch": "error",
	} {
		got, err := skipOutdir(map[string]string{SkipOutdir: value}, "mem://o")
		if err != nil {
			got = "error"
		}
		if got != want || (err != nil && !isFatal(err)) {
			t.Errorf("%q: %q, %v, want %q", value, got, err, want)
		}
	}
}
