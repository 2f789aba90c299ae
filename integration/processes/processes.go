// Package processes runs clusters of Quern's daemons as processes on loopback, for the integration
// tests and the benchmarks. It builds the programs, starts, stops, kills and restarts daemons, and
// runs mrsubmit.
//
// Every daemon has its own directory below the cluster's, with its data and its log file. It has
// the same ports after a restart. They are below the system's ephemeral ports, in a block that
// only this process uses.
//
// Several goroutines may use a Cluster, but only one at a time may use a [Daemon].
package processes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/identity"
)

// Module is the import path of all programs.
const Module = "github.com/quernmr/quern"

// builtVariable names a directory with programs that tools/check.sh has built before the tests, since
// each test binary would link the same ones.
const builtVariable = "QUERN_TEST_PROGRAMS"

var daemons = []string{"cmd/jobtracker", "cmd/tasktracker", "cmd/mrsubmit"}

// Build builds the daemons, mrsubmit and other packages of the module into dir.
func Build(dir string, packages ...string) error {
	return BuildPrograms(dir, append(slices.Clone(daemons), packages...)...)
}

// BuildPrograms builds packages of the module into dir. A program's name is the last element of its
// package's path.
func BuildPrograms(dir string, packages ...string) error {
	return build("", dir, LinkBuilt(dir, packages))
}

// LinkBuilt links programs that tools/check.sh has built into dir. It returns the packages of the others.
func LinkBuilt(dir string, packages []string) []string {
	built := os.Getenv(builtVariable)
	if built == "" {
		return packages
	}
	return slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		return os.Link(filepath.Join(built, path.Base(p)), filepath.Join(dir, path.Base(p))) == nil
	})
}

// BuildFrom is Build for the sources in tree.
func BuildFrom(tree, dir string, packages ...string) error {
	return build(tree, dir, append(slices.Clone(daemons), packages...))
}

func build(tree, dir string, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	args := []string{"build", "-buildvcs=false", "-o", dir + string(filepath.Separator)}
	for _, p := range packages {
		args = append(args, Module+"/"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", strings.Join(packages, ", "), err, out)
	}
	return nil
}

// Config describes a cluster.
type Config struct {
	Programs     string // directory that Build has filled
	Dir          string // of the cluster; created if missing
	JobTrackers  int
	TaskTrackers int
	MapSlots     int // of each task tracker; default 2
	ReduceSlots  int // of each task tracker; default 2

	JobTrackerFlags  []string // in addition to the necessary ones
	TaskTrackerFlags []string
	Env              []string // NAME=value, added to the environment of all daemons and commands
	Staging          string   // URL; default: a directory below Dir

	// Every daemon and command has certificates of an authority below Dir. By default that is the
	// automatic one.
	TLS      bool // -tls-dir
	Insecure bool // -insecure: no TLS

	Proxied bool // a [Proxy] forwards connections to daemons, and all gossip
}

// Cluster is a running cluster.
type Cluster struct {
	cfg          Config
	authority    *identity.Authority // of -tls-dir; nil: none
	identity     *identity.Identity  // of this process; nil: no TLS
	JobTrackers  []*Daemon
	TaskTrackers []*Daemon
}

// startWait limits a daemon's start, and its end.
const startWait = 3 * time.Minute

// Start starts all daemons and waits until each is ready.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.MapSlots == 0 {
		cfg.MapSlots = 2
	}
	if cfg.ReduceSlots == 0 {
		cfg.ReduceSlots = 2
	}
	c := &Cluster{cfg: cfg}
	if err := os.MkdirAll(c.staging(), 0o777); err != nil {
		return nil, err
	}
	if err := c.openAuthority(); err != nil {
		return nil, err
	}
	if err := c.plan(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for _, d := range c.All() {
		if err := d.Start(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	for _, d := range c.All() {
		if err := d.Ready(ctx); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if cfg.Proxied {
		if err := c.checkOpeners(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

func (c *Cluster) staging() string { return filepath.Join(c.cfg.Dir, "staging") }

// Staging returns the URL of the cluster's staging directory.
func (c *Cluster) Staging() string {
	if c.cfg.Staging != "" {
		return c.cfg.Staging
	}
	return "file://" + c.staging()
}

// plan chooses the name, ports and flags of every daemon.
func (c *Cluster) plan() error {
	var gossips []string
	for i := range c.cfg.JobTrackers {
		d, err := c.daemon("jobtracker", fmt.Sprintf("jt%d", i+1), 3)
		if err != nil {
			return err
		}
		c.JobTrackers = append(c.JobTrackers, d)
		if err := c.proxy(d); err != nil {
			return err
		}
		gossips = append(gossips, d.advertisedGossip())
	}
	for _, d := range c.JobTrackers {
		d.args = append(d.args, "-raft", d.Raft, "-staging", c.Staging(),
			"-bootstrap-expect", fmt.Sprint(c.cfg.JobTrackers), "-join", strings.Join(gossips, ","))
		d.args = append(d.args, c.cfg.JobTrackerFlags...)
	}
	for i := range c.cfg.TaskTrackers {
		d, err := c.AddTaskTracker(fmt.Sprintf("tt%d", i+1))
		if err != nil {
			return err
		}
		d.args = append(d.args, c.cfg.TaskTrackerFlags...)
	}
	return nil
}

// AddTaskTracker returns a new task tracker, which joins through the first job tracker's gossip
// address. The caller starts it.
func (c *Cluster) AddTaskTracker(id string, flags ...string) (*Daemon, error) {
	d, err := c.daemon("tasktracker", id, 2)
	if err != nil {
		return nil, err
	}
	if err := c.proxy(d); err != nil {
		return nil, err
	}
	d.args = append(d.args, "-host", id, "-join", c.JobTrackers[0].advertisedGossip(),
		"-map-slots", fmt.Sprint(c.cfg.MapSlots), "-reduce-slots", fmt.Sprint(c.cfg.ReduceSlots))
	d.args = append(d.args, flags...)
	c.TaskTrackers = append(c.TaskTrackers, d)
	return d, nil
}

func (c *Cluster) daemon(program, id string, ports int) (*Daemon, error) {
	d := &Daemon{ID: id, program: filepath.Join(c.cfg.Programs, program), dir: filepath.Join(c.cfg.Dir, id), Env: c.cfg.Env, user: c.User(), identity: c.identity}
	addrs := []*string{&d.Addr, &d.Gossip, &d.Raft}
	for i := range ports {
		var err error
		if *addrs[i], err = freeAddr(); err != nil {
			return nil, err
		}
	}
	d.args = []string{"-id", id, "-listen", d.Addr, "-gossip", d.Gossip, "-data", d.Data()}
	if c.authority != nil {
		role := identity.Role(program)
		if err := c.Issue(role, id, time.Now()); err != nil {
			return nil, err
		}
		d.args = append(d.args, "-tls-dir", c.Certs(role, id))
	}
	if c.cfg.Insecure {
		d.args = append(d.args, "-insecure")
	}
	return d, os.MkdirAll(d.dir, 0o777)
}

// All lists the daemons, job trackers first.
func (c *Cluster) All() []*Daemon {
	return append(append([]*Daemon(nil), c.JobTrackers...), c.TaskTrackers...)
}

// Addrs returns the API addresses of all job trackers, for -jobtracker.
func (c *Cluster) Addrs() string {
	var addrs []string
	for _, d := range c.JobTrackers {
		addrs = append(addrs, d.Advertised())
	}
	return strings.Join(addrs, ",")
}

// Command returns a command of mrsubmit or of another program that Build has built. Its environment
// has the job trackers' addresses.
func (c *Cluster) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.cfg.Programs, program), args...)
	cmd.Env = append(append(append(os.Environ(), c.User()...), c.cfg.Env...), "QUERN_JOBTRACKER="+c.Addrs(), "TMPDIR="+c.cfg.Dir)
	if c.cfg.Insecure {
		cmd.Env = append(cmd.Env, "QUERN_INSECURE=1")
	}
	if c.authority != nil {
		cmd.Env = append(cmd.Env, "QUERN_TLS_DIR="+c.Certs(identity.Client, User))
	}
	cmd.Dir = c.cfg.Dir
	return cmd
}

// Program returns the path of a program that Build has built.
func (c *Cluster) Program(name string) string { return filepath.Join(c.cfg.Programs, name) }

// Close ends all daemons with SIGTERM. It fails if one had to be killed, or has crashed before.
func (c *Cluster) Close() error {
	var errs []error
	for _, d := range append(append([]*Daemon(nil), c.TaskTrackers...), c.JobTrackers...) {
		switch {
		case d.Running():
			errs = append(errs, d.Terminate())
		case d.Crashed():
			errs = append(errs, fmt.Errorf("%s crashed: %v\n%s", d.ID, d.err, d.LastLines()))
		}
		d.stopProxies()
	}
	return errors.Join(errs...)
}

// Ports are below the system's ephemeral ports. Each process has its own block of ports, so that
// no other process uses the port of a daemon that is down.
const firstPort, lastPort, blockPorts = 20000, 32000, 1000

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

// freeAddr returns a loopback address with a port that is free for TCP and UDP.
func freeAddr() (string, error) {
	lock, err := block()
	if err != nil {
		return "", err
	}
	first := int64(lock.Addr().(*net.TCPAddr).Port)
	for range blockPorts {
		addr := fmt.Sprintf("127.0.0.1:%d", first+nextPort.Add(1)%blockPorts)
		tcp, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", addr)
		tcp.Close()
		if err != nil {
			continue
		}
		udp.Close()
		return addr, nil
	}
	return "", fmt.Errorf("no port is free from %d to %d", first, first+blockPorts)
}
