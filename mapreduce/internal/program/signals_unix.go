//go:build unix

package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// keepPipes keeps descriptors 3 and 4, the pipes of this process, from programs that it starts.
func keepPipes() {
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
}

// workerSignals returns a context that ends with SIGTERM, by which the tracker ends an attempt.
// On SIGQUIT the process prints its goroutines and goes on, so that SIGTERM can follow.
func workerSignals() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				cancel()
				continue
			}
			os.Stderr.Write(goroutines())
		}
	}()
	return ctx
}

// dieOfSIGTERM ends the process as SIGTERM does without a handler, for the parent's error.
func dieOfSIGTERM() {
	signal.Reset(syscall.SIGTERM)
	syscall.Kill(os.Getpid(), syscall.SIGTERM)
	select {}
}
