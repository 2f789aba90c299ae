package shuffle

import (
	"fmt"
	"math"
	"unsafe"
)

// arena is memory of a fixed size outside the Go heap: the garbage collector does not scan
// or count it. Only pages that were used take physical memory.
type arena struct{ mem []byte }

// maxArena keeps offsets within 32 bits.
const maxArena = min(math.MaxUint32, math.MaxInt) &^ 15

func newArena(size int64) (arena, error) {
	mem, err := mapMemory(int(min(size, maxArena)))
	if err != nil {
		return arena{}, fmt.Errorf("take %d bytes of memory: %w", size, err)
	}
	return arena{mem}, nil
}

// free returns the memory. The arena and all slices of it become invalid.
func (a *arena) free() {
	if a.mem != nil {
		unmapMemory(a.mem)
		a.mem = nil
	}
}

// viewAs converts memory to a slice of T, which must hold no pointers. The memory begins on
// a page, so it is aligned for every T.
func viewAs[T any](mem []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(t)))
}
