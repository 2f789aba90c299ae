// Downloads fills the cache with what the integration tests take from the network:
// Hadoop's jars, DuckDB and its generator of tables. It runs before the tests, so that
// a slow network does not use up their time. It names what it cannot get, and then
// ends with 1; the tests that need it are skipped.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/tpch/peers"
)

func main() {
	ctx, exit := context.Background(), 0
	if _, err := minicluster.Fetch(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Hadoop's jars:", err)
		exit = 1
	}
	if _, err := peers.DuckDB(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "DuckDB:", err)
		exit = 1
	}
	os.Exit(exit)
}
