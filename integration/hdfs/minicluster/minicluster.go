// Package minicluster runs a real HDFS on this machine for tests and benchmarks: one NameNode, or
// two with a JournalNode or a shared directory, and DataNodes in racks. Each daemon is a JVM with a small heap. It can
// be killed, paused and restarted.
//
// # Addresses
//
// DataNode n has the address 127.0.0.<n+1>, so that HDFS distinguishes racks and local replicas as
// on real machines. A NameNode identifies a DataNode by the source address of its connections,
// which BindingSocketFactory.java sets. A client is local to a DataNode if it dials the NameNode
// from the DataNode's address.
//
// # Requirements
//
// [Fetch] downloads Hadoop's jars with Maven into a cache outside the repository. With CI=true it
// installs Java and Maven. If they are not available, its error is [ErrUnavailable] and names
// them, and tests are skipped. It also keeps an archive of Hadoop's classes there, see
// [Jars.Archive].
//
// # Cleanup and concurrency
//
// All processes end with [Cluster.Close], or with the process that started them. All files are
// below Config.Dir and the cache. Several goroutines may use a Cluster, but only one at a time may
// use a [Daemon].
package minicluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Config describes a cluster.
type Config struct {
	Jars        *Jars
	Dir         string            // for all files; created if missing
	NameNodes   int               // 1, the default, or 2
	Hosts       []string          // names of this machine for two NameNodes, which then share a directory; nil: addresses and a JournalNode
	Racks       []string          // one for each DataNode: "/a"
	Replication int               // default 2
	BlockSize   int64             // default 16 MiB
	Properties  map[string]string // of hdfs-site.xml, in addition to the necessary ones
	Kerberos    string            // path of krb5.conf, if Properties demand Kerberos
	Optimized   bool              // JVMs are as in production, not such that they start soon and take little memory: for benchmarks
	Proxied     bool              // DataNodes listen on [Daemon.ListenAddr]; the caller's proxies listen on Addr
}

// Cluster is a running HDFS.
type Cluster struct {
	cfg       Config
	NameNodes []*Daemon
	DataNodes []*Daemon
	journal   *Daemon // nil: one NameNode only
}

// Nameservice is the name of a cluster of two NameNodes.
const Nameservice = "mini"

// startWait limits the start of all daemons, and each command.
const startWait = 3 * time.Minute

// Start starts all daemons and waits until clients can write files and all DataNodes are live.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.NameNodes == 0 {
		cfg.NameNodes = 1
	}
	if cfg.Replication == 0 {
		cfg.Replication = 2
	}
	if cfg.BlockSize == 0 {
		cfg.BlockSize = 16 << 20
	}
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	c := &Cluster{cfg: cfg}
	if err := c.plan(); err != nil {
		return nil, err
	}
	if err := c.boot(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// plan chooses addresses and writes the configuration.
func (c *Cluster) plan() error {
	ports, err := freePorts(len(c.cfg.Racks)+1, 2*c.cfg.NameNodes+5)
	if err != nil {
		return err
	}
	next := func() int { p := ports[0]; ports = ports[1:]; return p }
	for i := range c.cfg.NameNodes {
		d := &Daemon{ID: fmt.Sprintf("nn%d", i+1), IP: "127.0.0.1", class: nameNode, Port: next(), HTTP: next()}
		if c.cfg.Hosts != nil {
			d.host = c.cfg.Hosts[i]
		}
		c.NameNodes = append(c.NameNodes, d)
	}
	if c.cfg.NameNodes > 1 && c.cfg.Hosts == nil {
		c.journal = &Daemon{ID: "jn", IP: "127.0.0.1", class: journalNode, Port: next(), HTTP: next()}
	}
	data, http, ipc := next(), next(), next()
	for i, rack := range c.cfg.Racks {
		c.DataNodes = append(c.DataNodes, &Daemon{ID: fmt.Sprintf("dn%d", i+1), IP: fmt.Sprintf("127.0.0.%d", i+2), Rack: rack,
			class: dataNode, Port: data, HTTP: http, ipc: ipc, proxied: c.cfg.Proxied})
	}
	for _, d := range c.All() {
		if err := c.prepare(d); err != nil {
			return err
		}
	}
	return c.writeConf()
}

// All lists the daemons in the order in which they start.
func (c *Cluster) All() []*Daemon {
	var all []*Daemon
	if c.journal != nil {
		all = append(all, c.journal)
	}
	return append(append(all, c.NameNodes...), c.DataNodes...)
}

// boot formats and starts all daemons. Formatting the first NameNode needs the JournalNode. The
// second NameNode copies the first one's data. Without a JournalNode they are copied for it: with
// Kerberos the NameNode's own copy would need a web server with a host name.
func (c *Cluster) boot(ctx context.Context) error {
	if c.journal != nil {
		if err := errors.Join(c.journal.Start(), c.journal.awaitPort(ctx, c.journal.Port)); err != nil {
			return err
		}
	}
	first := c.NameNodes[0]
	if _, err := c.run(ctx, first, nameNode, "-format", "-force", "-nonInteractive", "-clusterId", "mini"); err != nil {
		return err
	}
	if c.cfg.Hosts != nil {
		if err := os.CopyFS(c.NameNodes[1].Data(), os.DirFS(first.Data())); err != nil {
			return err
		}
	}
	for _, d := range append([]*Daemon{first}, c.DataNodes...) {
		if err := d.Start(); err != nil {
			return err
		}
	}
	for _, standby := range c.NameNodes[1:] {
		if err := first.awaitPort(ctx, first.Port); err != nil {
			return err
		}
		if c.journal != nil {
			if _, err := c.run(ctx, standby, nameNode, "-bootstrapStandby", "-force", "-nonInteractive"); err != nil {
				return err
			}
		}
		if err := standby.Start(); err != nil {
			return err
		}
	}
	if len(c.NameNodes) > 1 {
		if err := c.Activate(ctx, first); err != nil {
			return err
		}
	}
	return c.Ready(ctx, first, len(c.DataNodes))
}

// Activate makes one of two NameNodes active. The other must be standby or dead.
func (c *Cluster) Activate(ctx context.Context, d *Daemon) error {
	if err := d.awaitPort(ctx, d.Port); err != nil {
		return err
	}
	_, err := c.run(ctx, nil, "org.apache.hadoop.hdfs.tools.DFSHAAdmin", "-transitionToActive", "--forceactive", d.ID)
	return err
}

// Admin runs hdfs dfsadmin with arguments such as "-safemode", "enter".
func (c *Cluster) Admin(ctx context.Context, args ...string) (string, error) {
	return c.run(ctx, nil, "org.apache.hadoop.hdfs.tools.DFSAdmin", args...)
}

// Shell runs hdfs dfs with arguments such as "-ls", "/".
func (c *Cluster) Shell(ctx context.Context, args ...string) (string, error) {
	return c.run(ctx, nil, "org.apache.hadoop.fs.FsShell", args...)
}

// Tool runs a class's main with the clients' configuration.
func (c *Cluster) Tool(ctx context.Context, class string, args ...string) (string, error) {
	return c.run(ctx, nil, class, args...)
}

// Conf returns the directory for HADOOP_CONF_DIR.
func (c *Cluster) Conf() string { return filepath.Join(c.cfg.Dir, "conf") }

// URL is the file system's root, without the slash: hdfs://127.0.0.1:20001 or
// hdfs://mini.
func (c *Cluster) URL() string {
	if len(c.NameNodes) > 1 {
		return "hdfs://" + Nameservice
	}
	return "hdfs://" + c.NameNodes[0].Addr()
}

// Close kills all daemons.
func (c *Cluster) Close() error {
	var errs []error
	for _, d := range c.All() {
		if d.Running() {
			errs = append(errs, d.Kill())
		}
	}
	return errors.Join(errs...)
}

// Ports are below the system's ephemeral ports, and below those of integration/processes. Each process has
// its own block of ports, because a daemon listens seconds after its port was found.
const firstPort, lastPort, blockPorts = 12000, 20000, 200

var nextPort atomic.Int64

// block reserves a block for this process: it listens on the block's first port until the process
// ends.
var block = sync.OnceValues(func() (net.Listener, error) {
	for first := firstPort; first < lastPort; first += blockPorts {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first)); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("no block of %d ports is free from %d to %d", blockPorts, firstPort, lastPort)
})

// freePorts finds ports that are free on the first n loopback addresses.
func freePorts(n, count int) (ports []int, err error) {
	lock, err := block()
	if err != nil {
		return nil, err
	}
	first := lock.Addr().(*net.TCPAddr).Port
	for range blockPorts {
		if len(ports) == count {
			return ports, nil
		}
		port := first + int(nextPort.Add(1)%blockPorts)
		if port != first && freeOnAll(n, port) {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("not %d ports are free from %d to %d", count, first, first+blockPorts)
}

func freeOnAll(n, port int) bool {
	for i := range n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%d", i+1, port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
