//go:build !unix

package program

import (
	"context"
	"os"
)

// Task trackers do not run here, so this process is no worker.

func keepPipes() {}

func workerSignals() context.Context { return context.Background() }

func dieOfSIGTERM() { os.Exit(1) }
