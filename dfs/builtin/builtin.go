// Package builtin is the table of the file systems that every process of Quern
// knows: file:// of the machine and hdfs:// as Hadoop's configuration describes it.
//
// Making the table costs nothing: configuration is read, and a NameNode dialled,
// when the first hdfs:// URL is used.
package builtin

import (
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/dfs/local"
)

// FileSystems makes the table. It needs no closing: connections that nobody uses are
// closed after seconds.
func FileSystems() dfs.Mux {
	return dfs.Mux{"file": local.New(), "hdfs": hdfs.FromEnvironment()}
}
