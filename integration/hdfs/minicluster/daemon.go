package minicluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	nameNode    = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	dataNode    = "org.apache.hadoop.hdfs.server.datanode.DataNode"
	journalNode = "org.apache.hadoop.hdfs.qjournal.server.JournalNode"
)

// Daemon is one of HDFS's processes, running or not.
type Daemon struct {
	ID   string // nn1, dn1; a DataNode's host name
	IP   string
	Rack string // of a DataNode
	Port int    // for clients
	HTTP int

	host    string // name for clients; empty: the address
	ipc     int
	proxied bool
	class   string
	dir     string
	args    []string // of java

	cmd   *exec.Cmd
	ended chan struct{} // closed when the process has ended
	err   error         // of Wait, once ended is closed
}

// Addr returns the address for clients.
func (d *Daemon) Addr() string { return fmt.Sprintf("%s:%d", cmp.Or(d.host, d.IP), d.Port) }

// ListenAddr returns the address on which it listens for clients. That is Addr or, with
// Config.Proxied, an address for the caller's proxy, which listens on Addr.
func (d *Daemon) ListenAddr() string {
	if !d.proxied {
		return d.Addr()
	}
	return strings.Replace(d.Addr(), "127.0.0.", "127.0.1.", 1)
}

// HTTPAddr returns the address of its web pages.
func (d *Daemon) HTTPAddr() string { return fmt.Sprintf("%s:%d", d.IP, d.HTTP) }

// Data returns its data directory.
func (d *Daemon) Data() string { return filepath.Join(d.dir, "data") }

// prepare creates a daemon's directory and sets its command line.
func (c *Cluster) prepare(d *Daemon) error {
	d.dir = filepath.Join(c.cfg.Dir, d.ID)
	if err := os.MkdirAll(d.dir, 0o777); err != nil {
		return err
	}
	d.args = append(c.java(d), d.class)
	own := c.daemonProperties(d)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		d.args = append(d.args, "-D", name+"="+own[name])
	}
	return nil
}

// java returns the JVM arguments of a daemon or, with nil, of a command.
func (c *Cluster) java(d *Daemon) []string {
	args := []string{"-Djava.net.preferIPv4Stack=true", "-Djava.io.tmpdir=" + c.cfg.Dir, "-Djdk.net.hosts.file=" + c.hosts()}
	if c.cfg.Optimized {
		args = append(args, "-Xmx1g")
	} else {
		args = append(args, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xss512k", "-Xmx128m", "-Xshare:auto", "-XX:-UsePerfData")
	}
	for _, p := range []string{"lang", "io", "util", "net", "nio", "util.concurrent"} {
		args = append(args, "--add-opens=java.base/java."+p+"=ALL-UNNAMED")
	}
	args = append(args, "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
	if d != nil {
		args = append(args, "-Dquern.bind="+d.IP)
	}
	if c.cfg.Kerberos != "" {
		args = append(args, "-Djava.security.krb5.conf="+c.cfg.Kerberos)
	}
	return append(args, c.cfg.Jars.classFlags(c.Conf())...)
}

func (c *Cluster) hosts() string { return filepath.Join(c.cfg.Dir, "hosts") }

// Start starts the process and returns at once; see [Cluster.Ready].
func (d *Daemon) Start() error {
	if d.Running() {
		return fmt.Errorf("%s runs already", d.ID)
	}
	log, err := os.OpenFile(d.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("java", d.args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, d.dir
	cmd.Env = append(os.Environ(), "HADOOP_USER_NAME="+Superuser)
	// Its own process group keeps Ctrl-C of the tests from interrupting it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", d.ID, err)
	}
	ended := make(chan struct{})
	d.cmd, d.ended, d.err = cmd, ended, nil
	go func() {
		d.err = cmd.Wait()
		close(ended)
	}()
	return nil
}

// Running reports whether the process runs, even if paused.
func (d *Daemon) Running() bool {
	if d.cmd == nil {
		return false
	}
	select {
	case <-d.ended:
		return false
	default:
		return true
	}
}

// Kill kills the process as kill -9 does, and waits for its end.
func (d *Daemon) Kill() error {
	if err := d.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-d.ended
	return nil
}

// Pause stops the process: its connections stay open but silent.
func (d *Daemon) Pause() error { return d.signal(syscall.SIGSTOP) }

// Continue continues a paused process.
func (d *Daemon) Continue() error { return d.signal(syscall.SIGCONT) }

func (d *Daemon) signal(s syscall.Signal) error {
	if !d.Running() {
		return fmt.Errorf("signal %s: it does not run", d.ID)
	}
	return d.cmd.Process.Signal(s)
}

// Log returns the file with its output.
func (d *Daemon) Log() string { return filepath.Join(d.dir, "log") }

func (d *Daemon) lastLines() string {
	text, err := os.ReadFile(d.Log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4<<10):])
}

// awaitPort waits until a port of the daemon accepts connections.
func (d *Daemon) awaitPort(ctx context.Context, port int) error {
	return d.poll(ctx, "listens", func() bool {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", d.IP, port), time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// pollEvery is long, because each look at a NameNode costs it three requests while it starts.
const pollEvery = 200 * time.Millisecond

// poll calls done until it returns true, the daemon has ended, or ctx has ended.
func (d *Daemon) poll(ctx context.Context, what string, done func() bool) error {
	ticks := time.NewTicker(pollEvery)
	defer ticks.Stop()
	for !done() {
		select {
		case <-d.ended:
			return fmt.Errorf("%s ended before it %s: %w\n%s", d.ID, what, d.err, d.lastLines())
		case <-ctx.Done():
			return fmt.Errorf("wait until %s %s: %w\n%s", d.ID, what, ctx.Err(), d.lastLines())
		case <-ticks.C:
		}
	}
	return nil
}

// run runs a Hadoop command with the configuration of a daemon or, with nil, of clients, and
// returns its output.
func (c *Cluster) run(ctx context.Context, d *Daemon, class string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	all := append(c.java(d), class)
	if d != nil {
		all = d.args
	}
	cmd := exec.CommandContext(ctx, "java", append(slices.Clone(all), args...)...)
	cmd.Dir = c.cfg.Dir
	cmd.Env = append(os.Environ(), "HADOOP_USER_NAME="+Superuser)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Without input, an interactive tool would ask again forever.
	cmd.Stdin = strings.NewReader("Y\n")
	out := &capped{room: maxOutput}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	if err != nil {
		name := class[strings.LastIndexByte(class, '.')+1:]
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), errors.Join(err, ctx.Err()), out.text)
	}
	return string(out.text), nil
}

const maxOutput = 1 << 20

// capped stores the beginning of an output. It fails further writes, which ends the command.
type capped struct {
	text []byte
	room int
}

func (c *capped) Write(p []byte) (int, error) {
	n := min(len(p), c.room)
	c.text = append(c.text, p[:n]...)
	if c.room -= n; n < len(p) {
		return n, fmt.Errorf("more than %d bytes of output", maxOutput)
	}
	return n, nil
}

// Superuser is the user of the daemons, which has all rights.
const Superuser = "hdfs"

// AwaitPort waits until clients can connect.
func (d *Daemon) AwaitPort(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	return d.awaitPort(ctx, d.Port)
}
