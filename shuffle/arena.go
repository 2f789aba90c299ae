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

// Memory keeps the memory of a [Collector] for the next one, which then causes no page faults.
// One collector at a time may use it.
type Memory struct{ kept arena }

// take returns an arena. It has zeros, unless it was used before. m may be nil.
func (m *Memory) take(size int64) (a arena, used bool, err error) {
	if m != nil {
		if a := m.kept; a.mem != nil && int64(len(a.mem)) == min(size, maxArena) {
			m.kept = arena{}
			return a, true, nil
		}
		m.Free()
	}
	a, err = newArena(size)
	return a, false, err
}

// put takes the memory of an arena, which then has none. If m is nil, it frees the arena.
func (m *Memory) put(a *arena) {
	if m == nil {
		a.free()
	} else if a.mem != nil {
		m.Free()
		m.kept, a.mem = *a, nil
	}
}

// Free returns the memory that is kept to the system. m may be nil.
func (m *Memory) Free() {
	if m != nil {
		m.kept.free()
	}
}

// viewAs converts memory to a slice of T, which must hold no pointers. The memory begins on
// a page, so it is aligned for every T.
func viewAs[T any](mem []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(t)))
}
