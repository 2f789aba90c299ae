//go:build !unix

package runtime

import (
	"encoding/binary"
	"os"
)

// positionMemory writes the number to the file itself. A failed write loses only the position.
type positionMemory struct{ file *os.File }

func mapPosition(f *os.File) (positionMemory, error) {
	file, err := os.OpenFile(f.Name(), os.O_WRONLY, 0)
	return positionMemory{file}, err
}

func (p positionMemory) store(n int64) {
	var number [positionSize]byte
	binary.NativeEndian.PutUint64(number[:], uint64(n))
	_, _ = p.file.WriteAt(number[:], 0)
}

func (p positionMemory) close() error { return p.file.Close() }

func openPosition(file string) (*os.File, error) { return os.Open(file) }
