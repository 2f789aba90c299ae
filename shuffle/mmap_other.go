//go:build !unix

package shuffle

import "unsafe"

// mapMemory allocates from the Go heap, in words for alignment.
func mapMemory(size int) ([]byte, error) {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))[:size], nil
}

func unmapMemory([]byte) {}
