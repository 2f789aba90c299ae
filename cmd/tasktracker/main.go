// Command tasktracker runs attempts of jobs on one machine, for the leader of the job
// trackers. It finds the job trackers by gossip, or at given addresses.
//
// Start and stop, in this order:
//
//	start gossip ─ lock the directory, listen for HTTP ─ print "ready" ─ streams to the
//	leader ─ … ─ SIGTERM, or drained ─ end attempts ─ leave gossip
//
// A drained task tracker (mrsubmit cluster drain) prints a line "drained" and ends with 0.
//
// docs/running-a-cluster.md describes how to run a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/tasktracker"
	"github.com/quernmr/quern/tasktracker/healthscript"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/wire"
)

func main() {
	os.Exit(daemon.Main("tasktracker", run))
}

func run(ctx context.Context, args []string, out daemon.Output) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	return serve(ctx, o, out)
}

const about = `A task tracker needs a gossip address of its cluster. On several machines:

  tasktracker -id tt1 -data /disk1/quern,/disk2/quern -join 10.0.0.1:7402 \
      -listen 10.0.0.4:7410 -gossip 10.0.0.4:7412 -insecure
`

// options has the checked flags.
type options struct {
	id, host, rack          string
	listen, advertise       string
	gossip, gossipAdvertise string
	join, jobTrackers       []string
	mapSlots, reduceSlots   int
	memory                  int64
	cores                   int
	maximum                 process.Maximum // of each attempt
	shuffleRate             int64
	disks                   []string
	staging                 string // URL; empty: from the first job tracker
	keep                    time.Duration
	keepBytes, attemptLogs  int64
	attemptDisk             int64
	stopGrace               time.Duration
	passEnv                 []string
	isolation               tasktracker.Isolation
	asOwner                 bool // workers use HDFS as the job's owner
	health                  tasktracker.Health
	admins                  []string // users who may read profiles
	logging                 daemon.Logging
	security                daemon.Security
	access                  daemon.Access
}

func parse(args []string, out daemon.Output) (*options, error) {
	offer := defaultOffer()
	o := &options{memory: offer.memory}
	var join, jobTrackers, data, passEnv, admins string
	var isolated isolationFlags
	var keep int
	set := flag.NewFlagSet("tasktracker", flag.ContinueOnError)
	set.StringVar(&o.id, "id", "", "`name` of this task tracker in its cluster (default the machine's name)")
	set.StringVar(&o.host, "host", "", "the file system's `name` of this machine (default the machine's name)")
	set.StringVar(&o.listen, "listen", "127.0.0.1:7410", "`host:port` for map outputs and logs")
	set.StringVar(&o.advertise, "advertise", "", "`host[:port]` at which others reach -listen; its host also holds for -gossip (default the addresses that they listen on)")
	set.StringVar(&o.gossip, "gossip", "127.0.0.1:7412", "`host:port`, UDP and TCP, by which daemons find each other")
	set.StringVar(&o.gossipAdvertise, "gossip-advertise", "", "`host[:port]` at which others reach -gossip")
	set.StringVar(&join, "join", "", "gossip `addresses` of daemons of the cluster, separated by commas")
	set.StringVar(&jobTrackers, "jobtracker", "", "`addresses` of all job trackers, separated by commas, instead of -join")
	set.IntVar(&o.mapSlots, "map-slots", offer.slots, "`maps` that run at the same time")
	set.IntVar(&o.reduceSlots, "reduce-slots", offer.slots, "`reduces` that run at the same time")
	set.Func("memory", "`size` of the memory that this machine offers to maps and reduces together, such as 16g: jobs request parts of it with mapreduce.map.memory.mb (default that of the control group, less 256m; without a limit slots alone count)", o.setMemory)
	set.IntVar(&o.cores, "vcores", offer.cores, "`cores` that this machine offers to maps and reduces together: jobs request some of them with mapreduce.map.cpu.vcores (default the limit of the control group; without a limit slots alone count)")
	o.limitFlags(set)
	set.Int64Var(&o.shuffleRate, "shuffle-rate", 0, "limit in `bytes` a second for fetching map outputs from other task trackers, over all jobs (default none)")
	set.StringVar(&o.rack, "rack", "", "`path` of the machine's rack, such as /dc1/r7, if the file system does not know it (default "+locality.DefaultRack+")")
	set.StringVar(&data, "data", "", "comma-separated `directories` of this task tracker alone, one per disk (default quern/data/tasktracker-ID in $XDG_STATE_HOME or ~/.local/state)")
	set.StringVar(&o.staging, "staging", "", "`URL` of the cluster's staging directory: job trackers with another one are refused (default the one of the first job tracker)")
	set.IntVar(&keep, "keep", 7, "`days` to keep logs of ended jobs")
	set.Int64Var(&o.keepBytes, "keep-bytes", 1<<30, "most `bytes` of such logs to keep")
	set.Int64Var(&o.attemptLogs, "attempt-log-bytes", tasktracker.DefaultAttemptLogs, "most `bytes` of logs per attempt, also while it runs: the first and the last part of each log are kept")
	set.DurationVar(&o.stopGrace, "stop-grace", tasktracker.DefaultStopGrace, "`time` that the processes of an ended attempt have after SIGTERM, until SIGKILL")
	set.Int64Var(&o.attemptDisk, "attempt-disk-bytes", 0, "most `bytes` in the working directory of an attempt of any job (default no limit but the job's)")
	set.StringVar(&passEnv, "pass-env", "", "`names` of environment variables that jobs get beside the usual ones, separated by commas; a * at the end means all that begin so (default none)")
	isolated.flags(set)
	set.BoolVar(&o.asOwner, "hdfs-as-owner", false, "jobs use HDFS as their owner, not as the user of this task tracker: with Kerberos the NameNode must allow it (hadoop.proxyuser.*); needs certificates")
	set.StringVar(&o.health.Script, "health-script", "", "`path` of a script that checks this machine: while it prints a line that begins with ERROR, the machine gets no new work (default none)")
	set.DurationVar(&o.health.Interval, "health-interval", time.Minute, "`time` between two runs of -health-script")
	set.DurationVar(&o.health.Timeout, "health-timeout", 30*time.Second, "`time` after which -health-script is killed: the machine then counts as unhealthy")
	set.StringVar(&admins, "admins", "admin", "comma-separated `users` who may profile this task tracker; no effect with -insecure. Without -tls-dir, this user is one, too")
	o.security.Flags(set)
	o.access.Flags(set)
	o.logging.Flags(set)
	set.Bool("version", false, "print the version")
	if err := daemon.Parse(set, args, out, about); err != nil {
		return nil, err
	}
	err := o.security.Check([]string{"-listen", "-gossip"}, []string{o.listen, o.gossip})
	if err := errors.Join(err, o.access.Check()); err != nil {
		return nil, err
	}
	o.join, o.jobTrackers, o.admins = daemon.SplitList(join), daemon.SplitList(jobTrackers), daemon.SplitList(admins)
	o.keep = time.Duration(keep) * 24 * time.Hour
	if o.passEnv = daemon.SplitList(passEnv); slices.ContainsFunc(o.passEnv, func(name string) bool { return process.Withheld(name) || name == "*" }) {
		return nil, daemon.Usagef("-pass-env %s: jobs never get variables that begin with QUERN_, or that name keytabs and tokens", passEnv)
	}
	if o.id, err = daemon.ID(o.id); err != nil {
		return nil, err
	}
	dirs := daemon.SplitList(data)
	if data == "" {
		dir, err := daemon.DefaultData(identity.TaskTracker, o.id)
		if err != nil {
			return nil, err
		}
		dirs = []string{dir} // its path may have commas
	}
	if o.disks, err = disks(dirs); err != nil {
		return nil, err
	}
	if o.isolation, err = jobIsolation(&isolated, &o.security, os.Getenv); err != nil {
		return nil, err
	}
	return o, o.check(keep)
}

func (o *options) check(keep int) (err error) {
	if err := daemon.CheckAddresses("-join", o.join); err != nil {
		return err
	}
	if err := daemon.CheckAddresses("-jobtracker", o.jobTrackers); err != nil {
		return err
	}
	if err := locality.CheckRack(o.rack); err != nil {
		return daemon.Usagef("-rack: %v", err)
	}
	switch {
	case len(o.join) == 0 && len(o.jobTrackers) == 0:
		return daemon.Usagef("-join is missing: give gossip addresses of the cluster")
	case o.mapSlots < 0 || o.reduceSlots < 0 || o.mapSlots+o.reduceSlots == 0:
		return daemon.Usagef("-map-slots %d, -reduce-slots %d: there must be at least one slot", o.mapSlots, o.reduceSlots)
	case max(o.mapSlots, o.reduceSlots, o.cores) > wire.MaxSlots:
		return daemon.Usagef("-map-slots %d, -reduce-slots %d, -vcores %d: at most %d are possible", o.mapSlots, o.reduceSlots, o.cores, wire.MaxSlots)
	case o.cores < 0:
		return daemon.Usagef("-vcores must not be negative, got %d", o.cores)
	case o.shuffleRate != 0 && o.shuffleRate < tasktracker.MinShuffleRate:
		return daemon.Usagef("-shuffle-rate must be at least %d bytes a second, got %d", tasktracker.MinShuffleRate, o.shuffleRate)
	case o.attemptLogs < tasktracker.MinAttemptLogs:
		return daemon.Usagef("-attempt-log-bytes must be at least %d, got %d", tasktracker.MinAttemptLogs, o.attemptLogs)
	case o.attemptDisk < 0:
		return daemon.Usagef("-attempt-disk-bytes must not be negative, got %d", o.attemptDisk)
	case o.stopGrace <= 0 || o.stopGrace > tasktracker.MaxStopGrace:
		return daemon.Usagef("-stop-grace must be more than 0 and at most %v, got %v", tasktracker.MaxStopGrace, o.stopGrace)
	case keep < 1 || o.keepBytes < 1:
		return daemon.Usagef("-keep and -keep-bytes must be at least 1, got %d and %d", keep, o.keepBytes)
	}
	if err := errors.Join(o.checkHealth(), o.checkLimits()); err != nil {
		return err
	}
	if o.staging, err = daemon.CheckStaging(o.staging); err != nil {
		return err
	}
	return o.checkAdvertised()
}

// checkHealth refuses a health script that cannot run.
func (o *options) checkHealth() error {
	switch {
	case o.health.Interval <= 0:
		return daemon.Usagef("-health-interval must be positive, got %v", o.health.Interval)
	case o.health.Timeout <= 0:
		return daemon.Usagef("-health-timeout must be positive, got %v", o.health.Timeout)
	case o.health.Script == "":
		return nil
	}
	if err := healthscript.Check(o.health.Script); err != nil {
		return daemon.Usagef("-health-script: %v", err)
	}
	return nil
}

// checkAdvertised refuses addresses that others cannot dial.
func (o *options) checkAdvertised() error {
	if o.gossipAdvertise == "" {
		o.gossipAdvertise = daemon.HostOf(o.advertise)
	}
	if _, err := daemon.Advertised("-gossip-advertise", o.gossipAdvertise, o.gossip); err != nil {
		return err
	}
	_, err := daemon.Advertised("-advertise", o.advertise, o.listen)
	return err
}

// disks checks the directories of -data and makes them absolute. The tracker's own files are in the
// first one.
func disks(dirs []string) ([]string, error) {
	var all []string
	for _, dir := range dirs {
		abs, err := local.Path(dir)
		if err != nil {
			return nil, daemon.Usagef("-data: %v", err)
		}
		all = append(all, abs)
	}
	if len(all) == 0 {
		return nil, daemon.Usagef("-data is missing: give a directory for files")
	}
	for i, dir := range all {
		for _, other := range all[:i] {
			switch {
			case dir == other:
				return nil, daemon.Usagef("-data: %s is given twice", dir)
			case isBelow(dir, other):
				return nil, daemon.Usagef("-data: %s is inside %s; directories must be separate", dir, other)
			case isBelow(other, dir):
				return nil, daemon.Usagef("-data: %s is inside %s; directories must be separate", other, dir)
			}
		}
	}
	return all, nil
}

// isBelow reports whether a directory is below another. Both paths must be clean.
func isBelow(dir, parent string) bool {
	return strings.HasPrefix(dir, strings.TrimSuffix(parent, "/")+"/")
}

// advertised returns the address that others dial, or "" if its port is known only after the
// tracker listens.
func (o *options) advertised() string {
	if o.advertise == "" {
		return ""
	}
	addr, err := daemon.Advertised("-advertise", o.advertise, o.listen)
	if err != nil {
		return ""
	}
	if _, port, err := net.SplitHostPort(addr); err != nil || port == "0" {
		return ""
	}
	return addr
}
