//go:build !unix

package shuffle

import "unsafe"

// mapMemory takes the memory from the Go heap, in words so that it is aligned.
func mapMemory(size int) ([]byte, error) {
	words := make([]uint64, (size+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))[:size], nil
}

func unmapMemory([]byte) {}
