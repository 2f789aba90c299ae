//go:build !unix

package runtime

import (
	"errors"
	"time"
)

// Attempts have no processes of their own here.

func processorTime() time.Duration { return 0 }

func redirect(string) error {
	return errors.New("the output of an attempt cannot be redirected on this system: workers run on Linux and macOS")
}

func keepOutput() []int { return nil }

func restoreOutput([]int) {}
