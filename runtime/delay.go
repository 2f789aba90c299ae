package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// runDelay returns how long the threads of this process have run, and have waited for a processor. Both are 0 where
// the kernel does not tell.
func runDelay() (ran, waited time.Duration) {
	files, _ := filepath.Glob("/proc/self/task/*/schedstat")
	for _, name := range files {
		var r, w time.Duration
		if text, err := os.ReadFile(name); err == nil { // else the thread has ended
			_, _ = fmt.Sscan(string(text), &r, &w)
		}
		ran, waited = ran+r, waited+w
	}
	return ran, waited
}

// stretch returns how many times longer work takes because other processes use the processors, since a moment at
// which runDelay has returned ran and waited. 0: not known.
func stretch(ran, waited time.Duration) float64 {
	nowRan, nowWaited := runDelay()
	if nowRan <= ran || nowWaited < waited { // threads that ended do not count any more
		return 0
	}
	return 1 + float64(nowWaited-waited)/float64(nowRan-ran)
}
