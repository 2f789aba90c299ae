package shuffle

import "golang.org/x/sys/unix"

// smallPages is the memory at each end that does not use huge pages. A small job then
// touches little unused memory. A large one saves most page faults while memory fills, and
// most TLB misses while it is gathered.
const smallPages = 2 << 20

func mapMemory(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, max(size, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	if size > 4*smallPages {
		// Only advice: a kernel without huge pages refuses it, without effect.
		_ = unix.Madvise(mem[smallPages:size-smallPages], unix.MADV_HUGEPAGE)
	}
	return mem[:size], nil
}

func unmapMemory(mem []byte) {
	if err := unix.Munmap(mem[:cap(mem)]); err != nil {
		panic("unmap memory: " + err.Error())
	}
}
