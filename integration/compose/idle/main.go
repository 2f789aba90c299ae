// Command idle waits for SIGTERM or SIGINT. It runs in containers that only provide a network, or
// in which tests run commands.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	<-ended
}
