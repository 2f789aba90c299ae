// Downloads fills the cache for the gating tests: Hadoop's jars, for a real HDFS. It runs before
// the tests, so that a slow network does not use up their time limits. If a download fails, it
// prints the download's name, prints the reason on stderr, and exits with 1. Tests that need the
// download are skipped then.
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
