package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// executable is a copy of an executable: a sealed memfd, or a file without a name.
type executable struct {
	file  *os.File
	memfd bool
}

// newCopy returns an empty copy. If the system permits no memfds that can be executed, it is a file.
func newCopy(dir, as string, inMemory bool) (executable, error) {
	if inMemory {
		fd, err := createMemfd("quern-" + as[:16])
		if err == nil {
			return executable{file: os.NewFile(uintptr(fd), "memfd of program "+as), memfd: true}, nil
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return executable{}, err
	}
	name := filepath.Join(dir, as+".part")
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return executable{}, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o555) // other users may run it
	if err != nil {
		return executable{}, err
	}
	if err := os.Remove(name); err != nil { // before a job can open it
		return executable{}, errors.Join(err, f.Close())
	}
	return executable{file: f}, nil
}

func createMemfd(name string) (int, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3 all memfds can be executed
		fd, err = unix.MemfdCreate(name, flags)
	}
	return fd, err
}

// executesMemfds reports whether the system executes memfds. It tries one without a known format.
func executesMemfds(permits func(*os.File) bool) bool {
	fd, err := createMemfd("quern-probe")
	if err != nil {
		return false
	}
	probe := executable{file: os.NewFile(uintptr(fd), "probe"), memfd: true}
	defer func() { _ = probe.remove() }()
	_, err = probe.file.WriteString("\x7fELF")
	return errors.Join(err, probe.seal()) == nil && permits(probe.file)
}

// seal ends the writing. From here on the copy cannot change, and is open for reading.
func (e *executable) seal() error {
	if e.memfd {
		const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
		if _, err := unix.FcntlInt(e.file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
			return fmt.Errorf("seal the memfd: %w", err)
		}
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", e.file.Fd()))
	if err != nil {
		return err
	}
	err = e.file.Close()
	e.file = f
	return err
}

// open returns another descriptor of the copy, for one worker. The name is empty.
func (e *executable) open() (f *os.File, name string, err error) {
	fd, err := unix.FcntlInt(e.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, "", err
	}
	return os.NewFile(uintptr(fd), e.file.Name()), "", nil
}

// remove gives up the copy.
func (e *executable) remove() error { return e.file.Close() }
