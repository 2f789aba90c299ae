//go:build unix

package runtime

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// positionMemory is the number in a file, in memory that is shared with the file: a store costs
// about a nanosecond, and the file has it after any end of the process.
type positionMemory struct{ mem []byte }

func mapPosition(f *os.File) (positionMemory, error) {
	mem, err := unix.Mmap(int(f.Fd()), 0, positionSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return positionMemory{mem}, os.NewSyscallError("mmap", err)
}

func (p positionMemory) store(n int64) {
	atomic.StoreInt64((*int64)(unsafe.Pointer(unsafe.SliceData(p.mem))), n)
}

func (p positionMemory) close() error { return os.NewSyscallError("munmap", unix.Munmap(p.mem)) }

// openPosition opens a file for reading, without waiting for a pipe or following a link.
func openPosition(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
}
