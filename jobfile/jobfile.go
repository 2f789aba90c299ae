// Package jobfile checks an executable before it is run: it must be a Go program for this
// machine, and a Quern job. It never executes the file. [Build] makes such a file from a
// package directory.
//
// A Quern job has a marker in its read-only data. Only mapreduce.Main and mapreduce.Drive link it
// in, and stripping keeps it:
//
//	quern-job-protocol: N X        N: decimal digits, X: any byte but a digit
//
// (without the blanks). X shows where the number ends, because nothing separates the strings
// in a program's file.
//
// This package builds the marker's text at run time. Otherwise commands that import it would
// look like jobs.
//
// # Invariants
//
//	J1  A check allocates less than 8 MiB and reads each byte of the file a few times, whatever the file
//	    contains: daemons check files of users. It unpacks nothing, and reads no sections. So the check
//	    needs no process of its own with a limit of memory.
//	J2  Every error names the file. It matches one of the variables below, or is an
//	    error of the file system.
//
// All functions are safe for concurrent use.
package jobfile

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/quernmr/quern/wire"
)

var (
	// ErrNotExecutable reports a file that no machine can run: a text, an archive, or a
	// program without execute permission.
	ErrNotExecutable = errors.New("is not executable")
	// ErrNotGo reports a program that Go did not build.
	ErrNotGo = errors.New("is not a Go program")
	// ErrNotJob reports a Go program without the marker.
	ErrNotJob = errors.New("is a Go program but no Quern job: it calls neither mapreduce.Main nor mapreduce.Drive")
	// ErrPlatform reports a program for another operating system or processor.
	ErrPlatform = errors.New("is built for another machine")
	// ErrProtocol reports a job built with another version of Quern.
	ErrProtocol = errors.New("speaks another protocol")
	// ErrInterpreter reports a program that needs a missing dynamic loader.
	ErrInterpreter = errors.New("needs a dynamic loader that is missing")
	// ErrTooLarge reports a program with more than [MaxSize] bytes.
	ErrTooLarge = errors.New("is too large")
	// ErrDirectory reports a directory in place of a file.
	ErrDirectory = errors.New("is a directory")
)

// MaxSize is the most bytes of a job program. A task tracker keeps copies of programs in memory or on its disk.
const MaxSize = 1 << 30

// Info describes an executable file.
type Info struct {
	Path        string
	Size        int64
	Mode        os.FileMode
	Package     string // import path of its main package
	GOOS        string
	GOARCH      string
	Protocol    int    // from the marker; 0: it has none
	Interpreter string // path of the dynamic loader; empty: it needs none
}

// describe describes an open Go program; the path is for messages.
func describe(f *os.File, path string) (*Info, error) {
	stat, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read job file: %w", err)
	case stat.IsDir():
		return nil, fmt.Errorf("%s %w", path, ErrDirectory)
	case !stat.Mode().IsRegular():
		return nil, fmt.Errorf("%s %w: not a regular file", path, ErrNotExecutable)
	}
	if err := CheckSize(path, stat.Size()); err != nil {
		return nil, err
	}
	info := &Info{Path: path, Size: stat.Size(), Mode: stat.Mode()}
	return info, info.read(f)
}

// CheckSize returns [ErrTooLarge] for a program with more than [MaxSize] bytes.
func CheckSize(path string, size int64) error {
	if size > MaxSize {
		return fmt.Errorf("%s %w: it has %d bytes, and a program may have %d: give large data to the job as side files", path, ErrTooLarge, size, int64(MaxSize))
	}
	return nil
}

// read sets the fields that the content of the file has.
func (info *Info) read(r io.ReaderAt) error {
	head := make([]byte, 256)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read job file: %w", err)
	}
	kind := sniff(head[:n])
	if !kind.isProgram() {
		return fmt.Errorf("%s %w: it is %s", info.Path, ErrNotExecutable, kind)
	}
	if err := info.build(r, kind); err != nil {
		return err
	}
	if kind == formatELF {
		if info.Interpreter, err = interpreter(r); err != nil {
			return fmt.Errorf("%s %w: %w", info.Path, ErrNotExecutable, err)
		}
	}
	if info.Protocol, err = protocol(r); err != nil {
		return fmt.Errorf("read job file: %w", err)
	}
	return nil
}

// build sets the fields from the Go linker's build information.
func (info *Info) build(r io.ReaderAt, kind format) error {
	if kind != native() {
		return fmt.Errorf("%s %w: it is %s, this one runs %s/%s", info.Path, ErrPlatform, kind, runtime.GOOS, runtime.GOARCH)
	}
	text, err := moduleInfo(r, kind)
	if err != nil {
		return fmt.Errorf("%s %w: %w", info.Path, ErrNotGo, err)
	}
	if text == "" {
		return fmt.Errorf("%s %w: it is %s without Go's build information", info.Path, ErrNotGo, kind)
	}
	info.Package, info.GOOS, info.GOARCH = field(text, "path\t"), setting(text, "GOOS"), setting(text, "GOARCH")
	return nil
}

// Check returns an error if the program cannot be a job on the given platform under the
// given protocol: [ErrNotJob], [ErrPlatform], [ErrProtocol] or [ErrNotExecutable].
func (info *Info) Check(goos, goarch string, protocol int) error {
	switch {
	case info.Protocol == 0:
		return fmt.Errorf("%s %w", info.Path, ErrNotJob)
	case info.GOOS != goos || info.GOARCH != goarch:
		return fmt.Errorf("%s %w: %s/%s, this one runs %s/%s", info.Path, ErrPlatform, info.GOOS, info.GOARCH, goos, goarch)
	case info.Protocol != protocol:
		return fmt.Errorf("%s %w: %d, this version of Quern speaks %d; build the job again", info.Path, ErrProtocol, info.Protocol, protocol)
	case goos != "windows" && info.Mode.Perm()&0o111 == 0:
		return fmt.Errorf("%s %w: its mode is %v; try chmod +x", info.Path, ErrNotExecutable, info.Mode)
	}
	return nil
}

// Check reads a file and returns an error if it cannot run here as a job. In addition to
// [Info.Check] it checks that the dynamic loader exists: [ErrInterpreter].
func Check(path string) (*Info, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read job file: %w", err)
	}
	defer f.Close()
	return CheckFile(f, path)
}

// CheckFile is Check for an open file; the name is for its errors.
func CheckFile(f *os.File, name string) (*Info, error) {
	info, err := describe(f, name)
	if err != nil {
		return nil, err
	}
	if err := info.Check(runtime.GOOS, runtime.GOARCH, wire.WorkerProtocol); err != nil {
		return nil, err
	}
	if info.Interpreter == "" {
		return info, nil
	}
	if _, err := os.Stat(info.Interpreter); err != nil {
		return nil, fmt.Errorf("%s %w: %s; build the job with CGO_ENABLED=0", name, ErrInterpreter, info.Interpreter)
	}
	return info, nil
}

// maxInterpreter bounds the length of a dynamic loader's path.
const maxInterpreter = 4096

func interpreter(r io.ReaderAt) (string, error) {
	progs, err := segments(r)
	if err != nil {
		return "", err
	}
	for _, p := range progs {
		if elf.ProgType(p.Type) != elf.PT_INTERP {
			continue
		}
		text := make([]byte, min(p.Filesz, maxInterpreter))
		n, err := r.ReadAt(text, int64(min(p.Off, math.MaxInt64)))
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("path of the dynamic loader: %w", err)
		}
		path, _, _ := bytes.Cut(text[:n], []byte{0})
		return string(path), nil
	}
	return "", nil
}

const (
	chunk     = 256 << 10
	maxDigits = 9
)

// marker returns the part of the marker before its number.
func marker() []byte { return []byte(strings.Join([]string{"quern", "job", "protocol"}, "-") + ":") }

// protocol returns the number of the marker, or 0 without a marker.
func protocol(r io.ReaderAt) (int, error) {
	want := marker()
	overlap := len(want) + maxDigits + 1 // a marker may begin at the end of a chunk
	buf := make([]byte, chunk+overlap)
	for offset := int64(0); ; offset += chunk {
		n, err := r.ReadAt(buf, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if found := firstNumber(buf[:n], want); found > 0 || err != nil {
			return found, nil
		}
	}
}

// firstNumber returns the number of the first complete marker, or 0. A complete marker has a
// number and a byte after it.
func firstNumber(data, want []byte) int {
	for {
		i := bytes.Index(data, want)
		if i < 0 {
			return 0
		}
		data = data[i+len(want):]
		end := bytes.IndexFunc(data, func(c rune) bool { return c < '0' || c > '9' })
		if end < 1 || end > maxDigits {
			continue
		}
		if n, err := strconv.Atoi(string(data[:end])); err == nil && n > 0 {
			return n
		}
	}
}
