package shuffle

import "golang.org/x/sys/unix"

// smallPages is the memory at each end without huge pages, so that a small job takes little
// memory. For a large job, huge pages avoid most page faults while memory fills, and most
// TLB misses while sorted records are read.
const smallPages = 2 << 20

func mapMemory(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, max(size, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	if size > 4*smallPages {
		// A kernel without huge pages returns an error, which does not matter.
		_ = unix.Madvise(mem[smallPages:size-smallPages], unix.MADV_HUGEPAGE)
	}
	return mem[:size], nil
}

func unmapMemory(mem []byte) {
	if err := unix.Munmap(mem[:cap(mem)]); err != nil {
		panic("unmap memory: " + err.Error())
	}
}
