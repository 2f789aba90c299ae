// Command tasktracker runs attempts of jobs on one machine, for the job tracker
// that leads. It finds the job trackers by gossip, or at the addresses it is given.
//
// Start and stop, in this order:
//
//	gossip ─ the directory is locked, HTTP listens ─ "ready" ─ streams to the leader ─
//	… ─ SIGTERM, or drained ─ attempts are ended ─ gossip says good-bye
//
// One that is drained (mrsubmit cluster drain) prints a line "drained" and ends with 0.
//
// docs/running-a-cluster.md describes how to run a cluster.
package main

import (
	"context"
	"flag"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/tasktracker"
)

func main() { os.Exit(daemon.Main("tasktracker", run)) }

func run(ctx context.Context, args []string, out daemon.Output) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	return serve(ctx, o, out)
}

const about = `A task tracker needs a directory and one address of its cluster:

  tasktracker -id tt1 -data /disk1/quern,/disk2/quern -join 10.0.0.1:7402 \
      -listen 10.0.0.4:7410 -gossip 10.0.0.4:7412 -insecure
`

// options are the flags, checked.
type options struct {
	id, host, rack          string
	listen, advertise       string
	gossip, gossipAdvertise string
	join, jobTrackers       []string
	mapSlots, reduceSlots   int
	shuffleRate             int64
	disks                   []string
	staging                 string // URL; empty: that of the first job tracker
	keep                    time.Duration
	keepBytes, attemptLogs  int64
	verbose                 bool
	security                daemon.Security
}

func parse(args []string, out daemon.Output) (*options, error) {
	o := &options{}
	var join, jobTrackers, data string
	var keep int
	set := flag.NewFlagSet("tasktracker", flag.ContinueOnError)
	set.StringVar(&o.id, "id", "", "`name` of this task tracker in its cluster (default the machine's)")
	set.StringVar(&o.host, "host", "", "`name` by which the file system knows this machine (default the machine's)")
	set.StringVar(&o.listen, "listen", "127.0.0.1:7410", "`host:port` for other task trackers' fetches and for logs")
	set.StringVar(&o.advertise, "advertise", "", "`host[:port]` under which others reach -listen, and by its host -gossip (default as they listen)")
	set.StringVar(&o.gossip, "gossip", "127.0.0.1:7412", "`host:port`, UDP and TCP, for finding job trackers")
	set.StringVar(&o.gossipAdvertise, "gossip-advertise", "", "`host[:port]` under which others reach -gossip")
	set.StringVar(&join, "join", "", "gossip `addresses` of daemons of the cluster, with commas between")
	set.StringVar(&jobTrackers, "jobtracker", "", "`addresses` of all job trackers, with commas between, in place of -join")
	set.IntVar(&o.mapSlots, "map-slots", runtime.NumCPU(), "`maps` that run at a time")
	set.IntVar(&o.reduceSlots, "reduce-slots", runtime.NumCPU(), "`reduces` that run at a time")
	set.Int64Var(&o.shuffleRate, "shuffle-rate", 0, "`bytes` a second that it fetches of map outputs from other task trackers at most, all jobs together (default any)")
	set.StringVar(&o.rack, "rack", "", "`path` of the machine's rack, like /dc1/r7, for a machine whose rack the file system does not tell (default "+locality.DefaultRack+")")
	set.StringVar(&data, "data", "", "`directories`, each on a disk of its own, with commas between, this task tracker's alone; needed")
	set.StringVar(&o.staging, "staging", "", "`URL` of the cluster's staging directory: it reads and runs nothing that a job tracker names elsewhere (default the one that the first job tracker names, from then on)")
	set.IntVar(&keep, "keep", 7, "`days` for which logs of ended jobs are kept")
	set.Int64Var(&o.keepBytes, "keep-bytes", 1<<30, "`bytes` that they may take")
	set.Int64Var(&o.attemptLogs, "attempt-log-bytes", tasktracker.DefaultAttemptLogs, "`bytes` that the logs of one attempt may take, while it runs too: the first and the last part of each are kept")
	o.security.Flags(set)
	set.BoolVar(&o.verbose, "v", false, "log more")
	set.Bool("version", false, "print the version")
	if err := daemon.Parse(set, args, out, about); err != nil {
		return nil, err
	}
	err := o.security.Check([]string{"-listen", "-gossip"}, []string{o.listen, o.gossip})
	if err != nil {
		return nil, err
	}
	o.join, o.jobTrackers = daemon.List(join), daemon.List(jobTrackers)
	o.keep = time.Duration(keep) * 24 * time.Hour
	if o.disks, err = disks(data); err != nil {
		return nil, err
	}
	return o, o.check(keep)
}

func (o *options) check(keep int) (err error) {
	if o.id, err = daemon.ID(o.id); err != nil {
		return err
	}
	if err := daemon.CheckAddresses("-join", o.join); err != nil {
		return err
	}
	if err := daemon.CheckAddresses("-jobtracker", o.jobTrackers); err != nil {
		return err
	}
	if err := locality.CheckRack(o.rack); err != nil {
		return daemon.Wrong("-rack: %v", err)
	}
	switch {
	case len(o.join) == 0 && len(o.jobTrackers) == 0:
		return daemon.Wrong("-join is missing: name gossip addresses of the cluster")
	case o.mapSlots < 0 || o.reduceSlots < 0 || o.mapSlots+o.reduceSlots == 0:
		return daemon.Wrong("-map-slots %d, -reduce-slots %d: it would run nothing", o.mapSlots, o.reduceSlots)
	case o.shuffleRate != 0 && o.shuffleRate < tasktracker.MinShuffleRate:
		return daemon.Wrong("-shuffle-rate %d: at least %d bytes a second", o.shuffleRate, tasktracker.MinShuffleRate)
	case o.attemptLogs < tasktracker.MinAttemptLogs:
		return daemon.Wrong("-attempt-log-bytes %d: at least %d", o.attemptLogs, tasktracker.MinAttemptLogs)
	case keep < 1 || o.keepBytes < 1:
		return daemon.Wrong("-keep %d, -keep-bytes %d: at least 1", keep, o.keepBytes)
	}
	if o.staging, err = daemon.CheckStaging(o.staging); err != nil {
		return err
	}
	return o.checkAdvertised()
}

// checkAdvertised refuses addresses that nobody could dial.
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

// disks makes the directories of -data absolute; the first is also the tracker's own.
func disks(data string) ([]string, error) {
	var all []string
	for _, dir := range daemon.List(data) {
		abs, err := local.Path(dir)
		if err != nil {
			return nil, daemon.Wrong("-data: %v", err)
		}
		all = append(all, abs)
	}
	if len(all) == 0 {
		return nil, daemon.Wrong("-data is missing: name the directory for files")
	}
	for i, dir := range all {
		for _, other := range all[:i] {
			switch {
			case dir == other:
				return nil, daemon.Wrong("-data: %s is named twice", dir)
			case within(dir, other):
				return nil, daemon.Wrong("-data: %s is within %s; each wants a directory of its own", dir, other)
			case within(other, dir):
				return nil, daemon.Wrong("-data: %s is within %s; each wants a directory of its own", other, dir)
			}
		}
	}
	return all, nil
}

// within says whether a directory is somewhere below another, both clean.
func within(dir, parent string) bool {
	return strings.HasPrefix(dir, strings.TrimSuffix(parent, "/")+"/")
}

// advertised is what the tracker tells others, who take the port from where it
// listens when it takes a free one.
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
