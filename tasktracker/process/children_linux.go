package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// listsChildren reports whether this kernel lists the children of processes.
var listsChildren = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// children returns the children of all threads of a process.
func children(pid int) (list []int) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, thread := range threads {
		text, err := readProc(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(text) {
			if child, err := strconv.Atoi(field); err == nil {
				list = append(list, child)
			}
		}
	}
	return list
}

// readProc reads a file of /proc with four system calls. An os.File needs twice as many, and this
// runs for each thread of a worker after each attempt.
func readProc(name string) (string, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var text []byte
	for part := make([]byte, 4096); ; {
		n, err := unix.Read(fd, part)
		text = append(text, part[:max(n, 0)]...)
		if err != nil || n <= 0 {
			return string(text), err
		}
	}
}
