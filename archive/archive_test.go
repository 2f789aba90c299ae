package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/membound"
	"pgregory.net/rapid"
)

// member is an entry of a test's archive. A name that ends with / is a directory.
type member struct {
	name, content string
	link          bool // symbolic, to content
	hard          bool // to content
	mode          fs.FileMode
}

func tarOf(t fataler, members ...member) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Typeflag: tar.TypeReg, Mode: int64(m.mode.Perm()), Size: int64(len(m.content))}
		switch {
		case m.link:
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, m.content, 0
		case m.hard:
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, m.content, 0
		case m.mode&fs.ModeNamedPipe != 0:
			h.Typeflag = tar.TypeFifo
		case m.mode&fs.ModeDevice != 0:
			h.Typeflag = tar.TypeBlock
		case strings.HasSuffix(m.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		err := w.WriteHeader(h)
		if err == nil && h.Size > 0 {
			_, err = io.WriteString(w, m.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zipOf(t fataler, members ...member) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		mode := m.mode
		if m.link {
			mode = fs.ModeSymlink | 0o777
		}
		h.SetMode(mode)
		to, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(to, m.content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fataler is a *testing.T or *rapid.T.
type fataler interface{ Fatal(...any) }

func gzipped(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(data)
	w.Close()
	return out.Bytes()
}

func unpack(name string, data []byte, dir string, limits Limits) error {
	return Unpack(context.Background(), name, bytes.NewReader(data), int64(len(data)), dir, limits)
}

// tree describes the files below a directory, a line each.
func tree(t fataler, dir string) []string {
	var all []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		below, _ := filepath.Rel(dir, name)
		switch below = filepath.ToSlash(below); {
		case d.IsDir():
			below += "/"
		case d.Type() == fs.ModeSymlink:
			text, err := os.Readlink(name)
			if err != nil {
				return err
			}
			below += " -> " + text
		default:
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			below += fmt.Sprintf(" %o %q", info.Mode().Perm(), content)
		}
		all = append(all, below)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestUnpack(t *testing.T) {
	members := []member{
		{name: "./"},
		{name: "./a", content: "old"},
		{name: "bin/run", content: "#!/bin/sh\n", mode: 0o4755},
		{name: "lib/"},
		{name: "lib/current", content: "v2", link: true},
		{name: "lib/v2/up", content: "../../a", link: true},
		{name: "lib/v2/x", content: "x"},
		{name: "./a", content: "new"},
		{name: "nowhere", content: "later", link: true},
	}
	want := []string{`a 444 "new"`, "bin/", `bin/run 555 "#!/bin/sh\n"`, "lib/", "lib/current -> v2", "lib/v2/", "lib/v2/up -> ../../a", `lib/v2/x 444 "x"`, "nowhere -> later"}
	plain := tarOf(t, members...)
	for name, data := range map[string][]byte{
		"hdfs://nn/d/A.ZIP": zipOf(t, members...), "a.jar": zipOf(t, members...), "a.tar": plain, "a.tgz": gzipped(plain), "a.TAR.gz": gzipped(plain),
	} {
		dir := filepath.Join(t.TempDir(), "d")
		if err := unpack(name, data, dir, DefaultLimits); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := tree(t, dir); !slices.Equal(got, want) {
			t.Errorf("%s: unpacked\n%s\nexpected\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestHardLinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	data := tarOf(t, member{name: "a", content: "1"}, member{name: "d/b", content: "a", hard: true}, member{name: "a", content: "2"},
		member{name: "l", content: "a", link: true}, member{name: "m", content: "l", hard: true})
	if err := unpack("x.tar", data, dir, DefaultLimits); err != nil {
		t.Fatal(err)
	}
	if got, want := tree(t, dir), []string{`a 444 "2"`, "d/", `d/b 444 "1"`, "l -> a", "m -> a"}; !slices.Equal(got, want) {
		t.Errorf("unpacked %q, expected %q", got, want)
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		members []member
		want    string
	}{
		{[]member{{name: "/etc/x"}}, `member "/etc/x" has an absolute name`},
		{[]member{{name: "a/../../x"}}, `member "a/../../x" leads out of the directory`},
		{[]member{{name: "../"}}, `member "../" leads out`},
		{[]member{{name: strings.Repeat("n/", 2100) + "x"}}, "has a name of 4201 bytes"},
		{[]member{{name: "l", content: "/etc", link: true}}, `member "l" is a link to the absolute name "/etc"`},
		{[]member{{name: "d/l", content: "../../x", link: true}}, `member "d/l" is a link to "../../x", which leads out`},
		{[]member{{name: "d/l", content: "./.././../x", link: true}}, "which leads out"},
		{[]member{{name: "l", content: "a/../b", link: true}}, "which has .. after another name"},
		{[]member{{name: "l", content: "d", link: true}, {name: "l/x"}}, `member "l/x" is below the link "l"`},
		{[]member{{name: "l", content: "d", link: true}, {name: "l/"}}, `member "l" is a link and a directory`},
		{[]member{{name: "a/x"}, {name: "a"}}, `member "a" is a directory and a file or link`},
		{[]member{{name: "a"}, {name: "a/x"}}, `member "a" is a file and a directory`},
		{[]member{{name: "p", mode: fs.ModeNamedPipe}}, `member "p" is a device`},
		{[]member{{name: "dev/sda", mode: fs.ModeDevice}}, `member "dev/sda" is a device`},
		{[]member{{name: "a", content: "123456"}, {name: "b", content: "12345"}}, "content has more than 10 bytes"},
		{[]member{{name: "a/b/c/d/e/f"}}, "more than 5 files"},
	} {
		for kind, data := range map[string][]byte{"x.tar": tarOf(t, test.members...), "x.zip": zipOf(t, test.members...)} {
			outer := t.TempDir()
			dir := filepath.Join(outer, "d")
			err := unpack(kind, data, dir, Limits{Bytes: 10, Entries: 5})
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %.60v: %v; expected an error with %q", kind, test.members, err, test.want)
			}
			if left := tree(t, outer); len(left) > 0 {
				t.Errorf("%s, %.60v: left %q", kind, test.members, left)
			}
		}
	}
	for name, data := range map[string][]byte{
		"hard.tar": tarOf(t, member{name: "h", content: "../x", hard: true}), "none.tar": tarOf(t, member{name: "h", content: "x", hard: true}),
		"a.7z": nil, "a": nil, "tar": nil, "a.gz": nil,
	} {
		if err := unpack(name, data, filepath.Join(t.TempDir(), "d"), DefaultLimits); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, expected that it is refused", name, err)
		}
	}
}

// TestDamaged cuts archives: each is refused, and nothing remains.
func TestDamaged(t *testing.T) {
	plain := tarOf(t, member{name: "a", content: "content"}, member{name: "d/"})
	for name, data := range map[string][]byte{"x.tar": plain, "x.tgz": gzipped(plain), "x.zip": zipOf(t, member{name: "a", content: "content"})} {
		outer := t.TempDir()
		enough := len(data)
		if name == "x.tar" {
			enough = 512 + 512 + 512 + 1024
		}
		for n := range enough {
			if n%29 != 0 && n%512 > 1 && n < enough-2 {
				continue
			}
			if err := unpack(name, data[:n], filepath.Join(outer, "d"), DefaultLimits); err == nil {
				t.Fatalf("%s: the first %d of %d bytes were unpacked", name, n, len(data))
			}
			if left := tree(t, outer); len(left) > 0 {
				t.Fatalf("%s: the first %d bytes left %q", name, n, left)
			}
		}
	}
}

// sparse is a file of zeros that ends with some bytes.
type sparse struct {
	size int64
	end  []byte
}

func (s sparse) ReadAt(p []byte, off int64) (n int, err error) {
	clear(p)
	begin := s.size - int64(len(s.end))
	if n = int(min(int64(len(p)), s.size-off)); n < len(p) {
		err = io.EOF
	}
	if from := max(off, begin); from < off+int64(n) {
		copy(p[from-off:n], s.end[from-begin:])
	}
	return n, err
}

// TestManyMembers: a zip file with more members than may be unpacked takes no memory for all of them, nor one that claims
// so many. Those of the limit are unpacked, also if their signatures are cut by a read.
func TestManyMembers(t *testing.T) {
	limits := Limits{Bytes: 1 << 20, Entries: 1000}
	var members []member
	for i := range 200_000 {
		members = append(members, member{name: strings.Repeat("x", i%7+1) + "/"}) // few directories
	}
	for n, refused := range map[int]bool{1000: false, 3000: true, 200_000: true} {
		data := zipOf(t, members[:n]...)
		membound.Bound{Free: 6 << 20}.Check(t, 0, func() {
			dir := filepath.Join(t.TempDir(), "d")
			if err := unpack("x.zip", data, dir, limits); errors.Is(err, ErrRefused) != refused || !refused && err != nil {
				t.Errorf("%d members: %v", n, err)
			}
		})
	}
	const size = 16 << 30
	claim := func(members uint64) []byte {
		le := binary.LittleEndian
		end := le.AppendUint64([]byte("PK\x06\x06"), 44)
		end = append(end, make([]byte, 12)...)
		end = le.AppendUint64(le.AppendUint64(end, members), members)
		end = le.AppendUint64(le.AppendUint64(end, 0), size-98)
		end = le.AppendUint32(le.AppendUint64(append(end, "PK\x06\x07\x00\x00\x00\x00"...), size-98), 1)
		return append(end, "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"...)
	}
	membound.Bound{Free: 1 << 20}.Check(t, 0, func() {
		err := Unpack(t.Context(), "x.zip", sparse{size, claim(500_000_000)}, size, filepath.Join(t.TempDir(), "d"), limits)
		if !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
	})
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the job was killed"))
	outer := t.TempDir()
	data := zipOf(t, member{name: "a"})
	err := Unpack(ctx, "x.zip", bytes.NewReader(data), int64(len(data)), filepath.Join(outer, "d"), DefaultLimits)
	if err == nil || !strings.Contains(err.Error(), "the job was killed") || len(tree(t, outer)) > 0 {
		t.Errorf("unpacked %q, error %v", tree(t, outer), err)
	}
}

// TestModel compares with a map: of regular files, and of directories above them.
func TestModel(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(r *rapid.T) {
		dir := filepath.Join(base, "d")
		defer os.RemoveAll(dir)
		files, want := make(map[string]member), make(map[string]bool)
		for range rapid.IntRange(0, 8).Draw(r, "members") {
			name := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "é", "x y"}), 1, 3).Draw(r, "name"), "/") + ".txt"
			files[name] = member{name: name, content: rapid.StringN(0, 20, -1).Draw(r, "content"), mode: fs.FileMode(rapid.IntRange(0, 0o777).Draw(r, "mode"))}
		}
		members := slices.Collect(maps.Values(files))
		for _, m := range members {
			want[fmt.Sprintf("%s %o %q", m.name, 0o444|m.mode&0o111, m.content)] = true
			for up := filepath.Dir(m.name); up != "."; up = filepath.Dir(up) {
				want[up+"/"] = true
			}
		}
		kind, data := "x.tgz", gzipped(tarOf(r, members...))
		if rapid.Bool().Draw(r, "zip") {
			kind, data = "x.zip", zipOf(r, members...)
		}
		if err := unpack(kind, data, dir, DefaultLimits); err != nil {
			r.Fatal(err)
		}
		got := tree(r, dir)
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			r.Fatalf("unpacked %q, expected %q", got, slices.Sorted(maps.Keys(want)))
		}
	})
}

// TestNothingOutside: however members and links are combined, nothing outside of the directory is written, and no
// path through an unpacked tree leads out of it.
func TestNothingOutside(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "d")
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "..", "..", ".", ""}), 1, 4)
	rapid.Check(t, func(r *rapid.T) {
		defer os.RemoveAll(dir)
		var members []member
		for range rapid.IntRange(1, 8).Draw(r, "members") {
			m := member{name: strings.Join(parts.Draw(r, "name"), "/")}
			kind := rapid.IntRange(0, 3).Draw(r, "kind")
			if m.link, m.hard = kind == 0, kind == 1; m.link || m.hard {
				m.content = strings.Join(parts.Draw(r, "link"), "/")
			}
			if err := unpack("x.tar", tarOf(r, append(members, m)...), dir, DefaultLimits); err == nil {
				members = append(members, m) // so that archives grow that are unpacked
			}
			checkInside(r, outer, dir)
			os.RemoveAll(dir)
		}
	})
}

func checkInside(r *rapid.T, outer, dir string) {
	for _, line := range tree(r, outer) {
		if line != "d/" && !strings.HasPrefix(line, "d/") {
			r.Fatalf("wrote %q outside of the directory", line)
		}
	}
	filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if real, err := filepath.EvalSymlinks(name); err == nil && real != dir && !strings.HasPrefix(real, dir+"/") {
			r.Fatalf("%s leads to %s", name, real)
		}
		return nil
	})
}

// FuzzUnpack: no file makes Unpack panic, write more than its limits, or take much memory.
func FuzzUnpack(f *testing.F) {
	members := []member{{name: "d/"}, {name: "d/a", content: strings.Repeat("text ", 99)}, {name: "l", content: "d/a", link: true}}
	f.Add(true, zipOf(f, members...))
	f.Add(false, tarOf(f, members...))
	outer := f.TempDir()
	f.Fuzz(func(t *testing.T, zip bool, data []byte) {
		name := map[bool]string{true: "x.zip", false: "x.tar"}[zip]
		dir := filepath.Join(outer, "d")
		defer os.RemoveAll(dir)
		membound.Bound{Free: 8 << 20, PerByte: 1 << 10}.Check(t, len(data), func() {
			os.RemoveAll(dir)
			_ = unpack(name, data, dir, Limits{Bytes: 1 << 20, Entries: 100})
		})
		if _, err := os.Stat(dir); err != nil {
			return
		}
		if n := len(tree(t, dir)); n > 100 {
			t.Errorf("made %d entries", n)
		}
	})
}

// TestSuffix: a file with another name and the suffix is unpacked as the archive.
func TestSuffix(t *testing.T) {
	for name, want := range map[string]string{
		"a.zip": ".zip", "dir.tar/a.JAR": ".jar", "a.b.tgz": ".tgz", "a.tar": ".tar", "a.tar.gz": ".tar.gz", "a.x.Tar.Bz2": ".tar.bz2", "tar.zip": ".zip", "hdfs://n:1/a.tar.zst": ".tar.zst",
	} {
		got := Suffix(name)
		zip, codec, err := formatOf(name)
		otherZip, otherCodec, otherErr := formatOf("0123abcd" + got)
		if got != want || zip != otherZip || codec != otherCodec || err != nil || otherErr != nil {
			t.Errorf("%s: suffix %q, want %q; %v, %v", name, got, want, err, otherErr)
		}
	}
}
