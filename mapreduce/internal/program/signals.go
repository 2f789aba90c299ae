package program

import (
	"bytes"
	"runtime"
)

// maxDump limits the text of all goroutines, in bytes.
const maxDump = 4 << 20

// attemptFrame is in the stack of the goroutine that runs the attempt's code.
const attemptFrame = "runtime.(*worker).run("

// goroutines returns the stacks of all goroutines in the form that the Go runtime prints on
// SIGQUIT. The attempt's goroutine comes first.
func goroutines() []byte {
	text := make([]byte, maxDump)
	text = text[:runtime.Stack(text, true)]
	stacks := bytes.Split(text, []byte("\n\n"))
	for i, stack := range stacks {
		if bytes.Contains(stack, []byte(attemptFrame)) {
			copy(stacks[1:i+1], stacks[:i])
			stacks[0] = stack
			break
		}
	}
	return append([]byte("SIGQUIT: goroutines of this worker\n\n"), append(bytes.Join(stacks, []byte("\n\n")), '\n')...)
}
