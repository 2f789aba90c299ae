package process

// maxEnded limits the children of a worker that have ended and that it has not reaped: each takes a
// number of the machine.
const maxEnded = 64

// allEnded reports whether these children of a worker have ended, and are few.
func allEnded(pids []int) bool {
	if len(pids) > maxEnded {
		return false
	}
	for _, pid := range pids {
		if p, err := readProcess(pid); err == nil && p.alive() {
			return false
		}
	}
	return true
}
