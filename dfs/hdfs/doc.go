// Package hdfs is the file system of hdfs:// URLs, on the client library
// github.com/colinmarc/hdfs/v2, which no other package imports.
//
// # Authorities
//
// hdfs://HOST:PORT and hdfs://HOST name a NameNode, hdfs://NAME a nameservice of
// Hadoop's configuration with one or several of them, hdfs:/// what fs.defaultFS
// says. Each authority is a cluster of its own with its own connections: few,
// shared by all files, and closed after five idle seconds, so a process that has
// nothing open holds none and sends nothing.
//
// # What it adds to the library
//
// The library's calls to NameNodes are used without what it wraps around them,
// see inside.go, since what it wraps around them is not what package dfs promises:
//
//   - A rename never replaces anything: the NameNode's flag to overwrite, which
//     the library always sets, is not set. So a rename is a compare-and-set of the
//     NameNode's own. Mkdir is one too, by way of such a rename.
//   - NameNodes are asked again, on a fresh connection, when one breaks, is
//     standby, or is in safe mode, until patience ends. A change whose answer was
//     lost is asked for again: a second rename then reports that the source is
//     missing, which package dfs allows for; a second create finds its own file
//     and makes it anew; the others come to the same.
//   - Every connection has deadlines, and answers have bounded lengths.
//   - Leases are renewed while files are being written, and only then.
//   - Block locations come with the NameNode's own listing, a directory at a time.
//     WebHDFS, one request for each file, is slower, needs another port and, with
//     Kerberos, another way to log in; the tests compare with it.
//   - A block's checksums are verified before the library sees the data: of a
//     packet with a wrong one it would deliver the data.
//   - A DataNode that has failed a reader is tried again after a minute; one that
//     has failed a writer gets no blocks of ours for ten.
//   - A block whose DataNodes fail while it is written is given up and written to
//     others, as long as no more than 32 MiB of it were written; else the writer
//     fails and the attempt is to be repeated.
//
// # What it refuses
//
// With ErrUnsupported: files that are erasure-coded or encrypted, and delegation
// tokens. Kerberos works with a file of tickets or a keytab. Where DataNodes want
// proof too (dfs.data.transfer.protection), reading is slower and writing does not
// survive the loss of a DataNode.
//
// # Concurrency
//
// An FS is safe for concurrent use. Locks are held in the order file, FS,
// cluster, conn, nameConn, and none but a file's while a server is waited for.
package hdfs
