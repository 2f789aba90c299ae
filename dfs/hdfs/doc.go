// Package hdfs is the file system for hdfs:// URLs. It uses the client library
// github.com/colinmarc/hdfs/v2, which no other package imports.
//
// # Authorities
//
// hdfs://HOST:PORT and hdfs://HOST name a NameNode. hdfs://NAME is a nameservice of
// Hadoop's configuration, with one or several NameNodes. hdfs:/// is the value of
// fs.defaultFS. Each authority has a few connections, which all files share. They close
// after five idle seconds, so an idle process holds no connection and sends nothing.
//
// # Differences from the library
//
// This package uses the library's RPC calls without its wrappers, see inside.go, because
// the wrappers do not give the guarantees of package dfs:
//
//   - A rename never replaces anything: the library always sets the NameNode's flag
//     to overwrite, this package does not. So a rename is an atomic compare-and-set
//     on the NameNode. Mkdir uses such a rename too.
//   - If a connection breaks, or a NameNode is in standby or safe mode, calls are
//     retried on a new connection, up to a time limit. A change without a response
//     is sent again. A second rename then reports a missing source, as package dfs
//     allows; a second create replaces its own file; other calls are idempotent.
//   - Every connection has deadlines, and responses have bounded lengths.
//   - Leases are renewed only while files are being written.
//   - Block locations come with the NameNode's own listing, a directory at a time.
//     WebHDFS needs a request per file, another port and, with Kerberos, another way
//     to log in; the tests compare with it.
//   - A block's checksums are verified before the library sees the data: the library
//     would return the data of a packet before checking it.
//   - If a read from a DataNode fails, readers use it again after a minute. If a write
//     to it fails, it gets no blocks from this process for ten minutes.
//   - Handshakes and protection of secured servers lie below the library, which knows nothing of
//     them: namesasl.go, tokenlogin.go, datasasl.go and package sasl. The library's own read wrong counts of
//     bytes, sent requests without protection, and believed unsigned messages.
//   - A file is written by a goroutine behind a queue: the caller goes on while packets
//     get checksums and are sent, and while a block ends and the next one begins. The
//     library's writer copies each byte twice more, and waits in each of its steps.
//   - If a block's DataNodes fail during the write, the block is abandoned and
//     written to others, if at most 32 MiB of it were written. Otherwise the writer
//     fails and the attempt must be retried.
//   - An open file being written has at most 37 MiB of packets: those that are kept of
//     a block, 4 MiB in the queue, and two more.
//
// # Limits
//
// It refuses with ErrUnsupported: erasure-coded and encrypted files, and what package sasl does not
// have. Kerberos works with a ticket cache, a keytab, or delegation tokens: [FS.Delegate] gets them, of
// another user too, if the NameNode lets this process act as that user.
//
// # Concurrency
//
// An FS is safe for concurrent use. Locks are taken in the order file, FS, cluster,
// pooledConn, nameConn. Only a file's lock is held while waiting for a server.
package hdfs
