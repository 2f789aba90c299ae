package jobfile

import (
	"bytes"
	"compress/zlib"
	"debug/buildinfo"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// program returns the source of a Go program that contains a text.
func program(text string) string {
	return fmt.Sprintf("package main\n\nfunc main() { print(%q) }\n", text)
}

// compile builds a one-file package and returns the executable's path.
func compile(t *testing.T, source string, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), "module example.com/tiny\n\ngo 1.26.0\n", 0o644)
	writeFile(t, filepath.Join(dir, "main.go"), source, 0o644)
	out := filepath.Join(dir, "tiny")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", out, ".")
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off"), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return out
}

func writeFile(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuiltPrograms(t *testing.T) {
	mark := string(marker())
	job := compile(t, program(mark+"2\n"))
	info, err := Check(job)
	if err != nil {
		t.Fatal(err)
	}
	if info.Protocol != 2 || info.GOARCH != runtime.GOARCH || info.Package != "example.com/tiny" || info.Interpreter != "" {
		t.Errorf("job described as %+v", info)
	}

	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	for _, c := range []struct {
		path string
		want error
		text string
	}{
		{compile(t, program("no marker")), ErrNotJob, "calls neither mapreduce.Main nor mapreduce.Drive"},
		{compile(t, program(mark+"7\n")), ErrProtocol, "7, this version of Quern speaks 2"},
		{compile(t, program(mark+"2\n"), "GOARCH="+other), ErrPlatform, runtime.GOOS + "/" + other},
	} {
		wantError(t, c.path, c.want, c.text)
	}
	if err := os.Chmod(job, 0o644); err != nil {
		t.Fatal(err)
	}
	wantError(t, job, ErrNotExecutable, "chmod +x")
}

func wantError(t *testing.T, path string, want error, text string) {
	t.Helper()
	_, err := Check(path)
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), path) {
		t.Errorf("%s: error %v, want %v with %q", path, err, want, text)
	}
}

// elfHeader is the start of a 64-bit little-endian program, without Go's build information.
const elfHeader = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00\x01\x00\x00\x00"

func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct {
		content string
		want    error
		text    string
	}{
		{"", ErrNotExecutable, "empty"},
		{"just words, größer\n", ErrNotExecutable, "a text file"},
		{"#!/bin/sh\nexit 1\n", ErrNotExecutable, "a script"},
		{"PK\x03\x04rest of a jar", ErrNotExecutable, "an archive"},
		{"!<arch>\n__.PKGDEF", ErrNotExecutable, "an archive"},
		{"\x1f\x8b\x08\x00", ErrNotExecutable, "compressed"},
		{"\x00\x01\x02", ErrNotExecutable, "no known format"},
		{"\xcf\xfa\xed\xfe\x07\x00\x00\x01", ErrPlatform, "Mach-O"},
		{"MZ\x90\x00\x03\x00", ErrPlatform, "PE (Windows)"},
		{elfHeader, ErrNotGo, "ELF"},
		{elfHeader + strings.Repeat("\xff", 4096), ErrNotGo, "ELF"},
	} {
		if runtime.GOOS != "linux" && i >= 7 {
			continue // these formats are native on other machines
		}
		wantError(t, writeFile(t, filepath.Join(dir, fmt.Sprint("file", i)), c.content, 0o755), c.want, c.text)
	}
	wantError(t, filepath.Join(dir, "missing"), fs.ErrNotExist, "read job file")
	wantError(t, dir, ErrDirectory, "is a directory")
}

// TestSystemProgram checks a C program, which needs a dynamic loader.
func TestSystemProgram(t *testing.T) {
	path, err := exec.LookPath("ls")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("no ls of ELF format here")
	}
	wantError(t, path, ErrNotGo, "without Go's build information")
}

// TestInterpreter checks the path of a C program's dynamic loader.
func TestInterpreter(t *testing.T) {
	path, err := exec.LookPath("ls")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("no ls of ELF format here")
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	loader, err := interpreter(f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(loader); loader != "" && err != nil {
		t.Errorf("loader of %s: %v", path, err)
	}
}

// TestMarkerAnywhere puts a marker at positions around the ends of chunks.
func TestMarkerAnywhere(t *testing.T) {
	mark := string(marker())
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.IntRange(1, 999_999_999).Draw(t, "number")
		before := rapid.SampledFrom([]int{0, 1, chunk, 2 * chunk}).Draw(t, "chunks") + rapid.IntRange(-40, 40).Draw(t, "shift")
		decoy := rapid.SampledFrom([]string{"", mark, mark + "%d\n", mark + "0\n", mark + "9999999999\n", mark[:7]}).Draw(t, "decoy")
		end := rapid.SampledFrom([]string{"\n", "\x00", "\xffrest", " 2006"}).Draw(t, "end")
		var file bytes.Buffer
		file.WriteString(decoy)
		file.Write(bytes.Repeat([]byte{'q'}, max(before, 0)))
		fmt.Fprintf(&file, "%s%d%s", mark, number, end)
		got, err := protocol(bytes.NewReader(file.Bytes()))
		if err != nil || got != number {
			t.Fatalf("found protocol %d, %v; want %d", got, err, number)
		}
	})
}

func TestBuild(t *testing.T) {
	mark := string(marker())
	dir := t.TempDir()
	pkg := func(name, source string) string {
		sub := filepath.Join(dir, name)
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(sub, "go.mod"), "module example.com/"+name+"\n\ngo 1.26.0\n", 0o644)
		if source != "" {
			writeFile(t, filepath.Join(sub, name+".go"), source, 0o644)
		}
		return sub
	}
	t.Setenv("GOWORK", "off")
	out := filepath.Join(dir, "out")
	for _, c := range []struct {
		dir      string
		want     error
		messages string
	}{
		{pkg("cgo", "package main\n\nimport \"C\"\n\nfunc main() {}\n"), ErrNoMain, ""},
		{pkg("job", program(mark+"2\n")), nil, ""},
		{pkg("library", "package library\n"), ErrNoMain, ""},
		{pkg("docs", ""), ErrNoMain, ""},
		{pkg("wrong", "package main\n\nfunc main() { undefined() }\n"), ErrBuild, "undefined: undefined"},
		{pkg("syntax", "package main\n\nfunc main( {\n"), ErrBuild, ""},
		{filepath.Join(dir, "missing"), fs.ErrNotExist, ""},
	} {
		var messages bytes.Buffer
		err := Build(t.Context(), c.dir, out, Anywhere, &messages)
		if !errors.Is(err, c.want) || !strings.Contains(messages.String(), c.messages) {
			t.Errorf("Build(%s) = %v, want %v; printed %q", c.dir, err, c.want, messages.String())
		}
		if err != nil && !strings.Contains(err.Error(), c.dir) {
			t.Errorf("error does not name %s: %v", c.dir, err)
		}
	}
	if _, err := Check(out); err != nil {
		t.Error(err)
	}
	here := filepath.Join(dir, "here")
	if err := Build(t.Context(), filepath.Join(dir, "job"), here, Here, os.Stderr); err != nil {
		t.Error(err)
	} else if _, err := Check(here); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", dir)
	if err := Build(t.Context(), filepath.Join(dir, "job"), out, Here, os.Stderr); !errors.Is(err, ErrNoGo) {
		t.Errorf("without a go command: %v", err)
	}
}

// checkBound is J1.
var checkBound = membound.Bound{Free: 8 << 20}

// TestCompressedSections: a program may have sections that unpack to much more than the file. The check does not
// unpack them.
func TestCompressedSections(t *testing.T) {
	if native() != formatELF {
		t.Skip("only ELF files have compressed sections")
	}
	program, err := os.ReadFile(compile(t, program(string(marker())+"2\n")))
	if err != nil {
		t.Fatal(err)
	}
	const unpacked = 256 << 20
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := io.CopyN(w, zeros{}, unpacked); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// The names of sections are in the second of two sections, which is compressed.
	begin := len(program)
	chdr := elf.Chdr64{Type: uint32(elf.COMPRESS_ZLIB), Size: unpacked, Addralign: 1}
	names := elf.Section64{Type: uint32(elf.SHT_STRTAB), Flags: uint64(elf.SHF_COMPRESSED), Off: uint64(begin), Size: uint64(binary.Size(chdr) + packed.Len())}
	program = append(write(t, program, chdr), packed.Bytes()...)
	binary.LittleEndian.PutUint64(program[0x28:], uint64(len(program))) // Shoff
	binary.LittleEndian.PutUint16(program[0x3c:], 2)                    // Shnum
	binary.LittleEndian.PutUint16(program[0x3e:], 1)                    // Shstrndx
	program = write(t, program, [2]elf.Section64{{}, names})
	path := writeFile(t, filepath.Join(t.TempDir(), "bomb"), string(program), 0o755)
	checkBound.Check(t, 0, func() {
		if _, err := Check(path); err != nil { // it would run
			t.Error(err)
		}
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func write(t *testing.T, to []byte, v any) []byte {
	t.Helper()
	to, err := binary.Append(to, binary.LittleEndian, v)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// TestBuildInformation: the build information is that which package debug/buildinfo finds, also without a look at
// the segments of ELF.
func TestBuildInformation(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{self, compile(t, program("none"))} {
		want, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, kind := range []format{native(), formatPE} {
			text, err := moduleInfo(f, kind)
			if err != nil || field(text, "path\t") != want.Path || setting(text, "GOOS") != runtime.GOOS || setting(text, "GOARCH") != runtime.GOARCH {
				t.Errorf("%s as %v: %v, %q", path, kind, err, text)
			}
		}
	}
}

// TestTooLarge: a program that is too large is refused before it is read.
func TestTooLarge(t *testing.T) {
	path := writeFile(t, filepath.Join(t.TempDir(), "large"), elfHeader, 0o755)
	if err := os.Truncate(path, MaxSize+1); err != nil {
		t.Skipf("no large files here: %v", err)
	}
	wantError(t, path, ErrTooLarge, "a program may have 1073741824")
}

// segmented returns an ELF file with segments that are all writable and contain the whole file.
func segmented(t testing.TB, class elf.Class, n int, rest string) []byte {
	head := elf.Header64{Ident: [elf.EI_NIDENT]byte([]byte(elfHeader)[:16]), Phoff: 64, Phentsize: 56, Phnum: uint16(n)}
	prog := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_W), Filesz: 1 << 62}
	file, err := binary.Append(nil, binary.LittleEndian, head)
	for range n {
		file, _ = binary.Append(file, binary.LittleEndian, prog)
	}
	if err != nil {
		t.Fatal(err)
	}
	file[elf.EI_CLASS] = byte(class)
	return append(file, rest...)
}

// FuzzRead: no file makes the check allocate much memory or search without end.
func FuzzRead(f *testing.F) {
	long := string(binary.AppendUvarint(nil, maxInfo))
	magic := infoMagic + "\x08\x02" + strings.Repeat("\x00", 16)
	f.Add([]byte(elfHeader))
	f.Add(segmented(f, elf.ELFCLASS64, 2, magic+"\x01g"+long))
	f.Add(segmented(f, elf.ELFCLASS64, maxSegments+1, ""))
	f.Add(segmented(f, elf.ELFCLASS32, 1, ""))
	f.Add(segmented(f, elf.ELFCLASS64, maxSegments, strings.Repeat(magic+"\x01g"+long+strings.Repeat("\x00", 11), 100)))
	f.Add(segmented(f, elf.ELFCLASS64, 1, magic+"\x01g\x40"+strings.Repeat("x", 16)+"path\ta\nbuild\tGOOS=linux\n"+strings.Repeat("x", 64)))
	f.Add([]byte("MZ\x00" + strings.Repeat("x", 13) + magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		checkBound.Check(t, 0, func() {
			r := &counted{r: bytes.NewReader(data)}
			info := &Info{Path: "file"}
			if err := info.read(r); err != nil && !strings.Contains(err.Error(), "file") {
				t.Errorf("the error does not name the file: %v", err)
			}
			if most := int64(4<<20 + 4*len(data) + maxSegments*chunk); r.n > most {
				t.Errorf("it read %d bytes of %d", r.n, len(data))
			}
		})
	})
}

// counted counts the bytes read.
type counted struct {
	r io.ReaderAt
	n int64
}

func (c *counted) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.r.ReadAt(p, offset)
	c.n += int64(n)
	return n, err
}
