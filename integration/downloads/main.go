// Downloads fills the cache with what the tests that gate take from the network: Hadoop's
// jars, for a real HDFS. It runs before the tests, so that a slow network does not use up
// their time. It prints the names of what cannot be had, says why on stderr, and then ends
// with 1; the tests that need it are skipped.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

func main() {
	if _, err := minicluster.Fetch(context.Background()); err != nil {
		fmt.Println("HDFS")
		fmt.Fprintln(os.Stderr, "Hadoop's jars:", err)
		os.Exit(1)
	}
}
