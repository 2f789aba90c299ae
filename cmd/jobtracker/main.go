// Command jobtracker is a job tracker: it takes jobs, decides what runs where, and
// tells task trackers. One of the job trackers of a cluster leads; all hold the
// same log, and go on as long as most of them live.
//
// Start and stop, in this order:
//
//	the directory is locked ─ HTTP, gossip and raft listen ─ "ready" ─ the cluster is
//	begun, or joined ─ … ─ SIGTERM ─ another takes the lead ─ streams and log are
//	closed ─ gossip says good-bye ─ the lock goes
//
// # Files
//
// Below -data, beside the log in raft/:
//
//	lock        held while it runs, see package datadir
//	quern-jobtracker
//	            the marker of that package
//	cluster     id of the cluster it belongs to, once it knows
//	candidate   there from before it may become a voter until it has state: a
//	            directory without both has lost what this job tracker has promised
//	staging/    the cluster's staging directory, for a job tracker that is alone
//
// docs/running-a-cluster.md describes how to run a cluster.
package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

func main() { os.Exit(daemon.Main("jobtracker", run)) }

func run(ctx context.Context, args []string, out daemon.Output) error {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	return serve(ctx, o, out)
}

const about = `A job tracker that is alone needs -data only. For three that survive the loss of
one, start this on each of them:

  jobtracker -id jt1 -listen 10.0.0.1:7400 -raft 10.0.0.1:7401 -gossip 10.0.0.1:7402 -insecure \
      -data /var/lib/quern -staging file:///shared/quern \
      -bootstrap-expect 3 -join 10.0.0.1:7402,10.0.0.2:7402,10.0.0.3:7402
`

// options are the flags, checked.
type options struct {
	id                                        string
	listen, raft, gossip                      string
	advertise, raftAdvertise, gossipAdvertise string
	join                                      []string
	expect                                    int
	data, staging                             string
	scheduling                                wire.Scheduling
	pools                                     string // URL; empty: none
	period, lease, raftTimeout                time.Duration
	keep                                      time.Duration
	keepBytes                                 int64
	admins                                    []string
	verbose                                   bool
	security                                  daemon.Security
}

func parse(args []string, out daemon.Output) (*options, error) {
	o := &options{}
	var join, admins string
	var keep int
	set := flag.NewFlagSet("jobtracker", flag.ContinueOnError)
	set.StringVar(&o.id, "id", "", "`name` of this job tracker in its cluster, for good (default the machine's)")
	set.StringVar(&o.listen, "listen", "127.0.0.1:7400", "`host:port` for clients and task trackers")
	set.StringVar(&o.raft, "raft", "127.0.0.1:7401", "`host:port` for the other job trackers' logs")
	set.StringVar(&o.gossip, "gossip", "127.0.0.1:7402", "`host:port`, UDP and TCP, for finding each other")
	set.StringVar(&o.advertise, "advertise", "", "`host[:port]` under which others reach -listen, and by its host the other two (default as they listen)")
	set.StringVar(&o.raftAdvertise, "raft-advertise", "", "`host[:port]` under which others reach -raft")
	set.StringVar(&o.gossipAdvertise, "gossip-advertise", "", "`host[:port]` under which others reach -gossip")
	set.StringVar(&join, "join", "", "gossip `addresses` of other daemons of the cluster, with commas between")
	set.IntVar(&o.expect, "bootstrap-expect", 0, "how many job trackers begin the cluster: `N` that see each other (default 1 without -join); without it, this one is added to a cluster that is there")
	set.StringVar(&o.data, "data", "", "`directory` for the log, this job tracker's alone; needed")
	set.StringVar(&o.staging, "staging", "", "`URL` of a directory that all trackers and clients see (default below -data, for a job tracker that is alone and on loopback)")
	set.StringVar(&o.scheduling.Scheduler, "scheduler", "flex", "`name` of the policy by which jobs get slots: "+strings.Join(menu.Names(), ", "))
	set.StringVar(&o.scheduling.Metric, "metric", "sum-response", "`name` of what flex and flowflex minimize: sum- or max-, with response, stretch, tardy, tardiness, lateness or sla, and -weighted or nothing")
	set.StringVar(&o.scheduling.Delay, "delay", "dynamic", "`rule` by which maps wait for a slot near their input: none, fixed=3s, paper or dynamic")
	set.StringVar(&o.pools, "pools", "", "`file` or URL with the pools that jobs share the cluster by, a Hadoop fair scheduler's allocation file; the leader reads it again when it changes")
	set.DurationVar(&o.period, "period", 500*time.Millisecond, "between allocations")
	set.DurationVar(&o.lease, "lease", 5*time.Second, "silence after which a task tracker is lost")
	set.DurationVar(&o.raftTimeout, "raft-timeout", 500*time.Millisecond, "silence of the leader after which another is elected")
	set.IntVar(&keep, "keep", 7, "`days` for which histories of ended jobs are kept")
	set.Int64Var(&o.keepBytes, "keep-bytes", 1<<30, "`bytes` that they may take")
	set.StringVar(&admins, "admins", "admin", "`users`, with commas between, who may change any job and the cluster, where users have certificates")
	o.security.Flags(set)
	set.BoolVar(&o.verbose, "v", false, "log more")
	set.Bool("version", false, "print the version")
	if err := daemon.Parse(set, args, out, about); err != nil {
		return nil, err
	}
	err := o.security.Check([]string{"-listen", "-raft", "-gossip"}, []string{o.listen, o.raft, o.gossip})
	if err != nil {
		return nil, err
	}
	o.join, o.keep = daemon.List(join), time.Duration(keep)*24*time.Hour
	o.admins = daemon.List(admins)
	given := false
	set.Visit(func(f *flag.Flag) { given = given || f.Name == "admins" })
	if given && o.security.TLSDir == "" {
		return nil, daemon.Wrong("-admins needs -tls-dir: without certificates nobody is known, and everybody may do everything")
	}
	for _, name := range o.admins {
		if err := identity.CheckName(name); err != nil {
			return nil, daemon.Wrong("-admins: %v", err)
		}
	}
	if err := admission.CheckScheduling(o.scheduling); err != nil {
		return nil, daemon.Wrong("-%s", strings.TrimPrefix(err.Error(), admission.ErrBadScheduling.Error()+": "))
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
	switch {
	case o.data == "":
		return daemon.Wrong("-data is missing: name the directory for the log")
	case o.period <= 0:
		return daemon.Wrong("-period must be positive, got %v", o.period)
	case o.lease < 100*time.Millisecond:
		return daemon.Wrong("-lease %v: at least 100ms", o.lease)
	case o.raftTimeout < 50*time.Millisecond:
		return daemon.Wrong("-raft-timeout %v: at least 50ms", o.raftTimeout)
	case keep < 1 || o.keepBytes < 1:
		return daemon.Wrong("-keep %d, -keep-bytes %d: at least 1", keep, o.keepBytes)
	case o.expect < 0 || o.expect > mostVoters:
		return daemon.Wrong("-bootstrap-expect %d: from 1 to %d", o.expect, mostVoters)
	case o.expect > 1 && len(o.join) == 0:
		return daemon.Wrong("-bootstrap-expect %d needs -join: name the gossip addresses of the others", o.expect)
	}
	if o.data, err = local.Path(o.data); err != nil {
		return daemon.Wrong("-data: %v", err)
	}
	if o.pools != "" {
		if o.pools, err = builtin.FileSystems().Clean(o.pools); err != nil {
			return daemon.Wrong("-pools: %v", err)
		}
	}
	if len(o.join) == 0 && o.expect == 0 {
		o.expect = 1
	}
	return o.chooseStaging()
}

// ownStaging is the staging directory below -data.
const ownStaging = "staging"

// mostVoters is more than any cluster gains from.
const mostVoters = 9

// chooseStaging takes a directory below -data only where nobody else has to see it.
func (o *options) chooseStaging() (err error) {
	if o.staging == "" {
		if len(o.join) > 0 || o.expect != 1 || !o.onLoopback() {
			return daemon.Wrong("-staging is missing: only a job tracker that is alone and on loopback has one of its own")
		}
		o.staging = "file://" + filepath.ToSlash(filepath.Join(o.data, ownStaging))
		return nil
	}
	o.staging, err = daemon.CheckStaging(o.staging)
	return err
}

func (o *options) onLoopback() bool {
	return daemon.Security{}.Check([]string{"-listen"}, []string{o.listen}) == nil && o.advertise == ""
}
