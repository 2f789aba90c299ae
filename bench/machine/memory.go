package machine

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/integration/processes"
)

// peakWorker runs a job and returns the largest VmHWM of its workers, in bytes. VmHWM never
// falls, so polling finds it.
func peakWorker(cmd *exec.Cmd) (int64, error) {
	if err := os.RemoveAll(cmd.Args[slices.Index(cmd.Args, "-output")+1]); err != nil {
		return 0, err
	}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var peak int64
	for {
		select {
		case err := <-done:
			if err != nil {
				return 0, fmt.Errorf("%w\n%s", err, &output)
			}
			return peak, nil
		case <-tick.C:
			for _, worker := range processes.Children(cmd.Process.Pid) {
				peak = max(peak, highWater(worker))
			}
		}
	}
}

// highWater returns a process's VmHWM; 0 if it has ended.
func highWater(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // empty if it has ended
	_, after, _ := strings.Cut(string(text), "\nVmHWM:")
	kilobytes, _, _ := strings.Cut(after, " kB")
	n, err := strconv.ParseInt(strings.TrimSpace(kilobytes), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
