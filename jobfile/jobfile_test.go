package jobfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
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
		{compile(t, program("no marker")), ErrNotJob, "never calls mapreduce.Main"},
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
		{pkg("job", program(mark+"2\n")), nil, ""},
		{pkg("library", "package library\n"), ErrNoMain, ""},
		{pkg("docs", ""), ErrNoMain, ""},
		{pkg("wrong", "package main\n\nfunc main() { undefined() }\n"), ErrBuild, "undefined: undefined"},
		{pkg("syntax", "package main\n\nfunc main( {\n"), ErrBuild, ""},
		{filepath.Join(dir, "missing"), fs.ErrNotExist, ""},
	} {
		var messages bytes.Buffer
		err := Build(t.Context(), c.dir, out, &messages)
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
	t.Setenv("PATH", dir)
	if err := Build(t.Context(), filepath.Join(dir, "job"), out, os.Stderr); !errors.Is(err, ErrNoGo) {
		t.Errorf("without a go command: %v", err)
	}
}
