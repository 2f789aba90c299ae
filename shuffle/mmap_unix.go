//go:build unix && !linux

package shuffle

import "golang.org/x/sys/unix"

func mapMemory(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, max(size, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	return mem[:size], nil
}

func unmapMemory(mem []byte) {
	if err := unix.Munmap(mem[:cap(mem)]); err != nil {
		panic("unmap memory: " + err.Error())
	}
}
