// Package builtin has the file systems of every Quern process: file:// for this machine, and
// hdfs:// as Hadoop's configuration says.
//
// Making the table costs nothing: the first use of an hdfs:// URL reads the configuration
// and connects to a NameNode.
package builtin

import (
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/dfs/local"
)

// FileSystems makes the table. It needs no Close: unused connections close after seconds.
func FileSystems() dfs.Mux {
	return dfs.Mux{"file": local.New(), "hdfs": hdfs.FromEnvironment()}
}
