// Command idle does nothing until it is asked to end. It is what a container runs
// that is there for its network, or for others to run something in.
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
