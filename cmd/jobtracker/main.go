// Command jobtracker is a job tracker: it accepts jobs and assigns their tasks to task trackers.
// One job tracker of a cluster is the leader. All have the same log. The cluster works while a
// majority of them runs.
//
// Start and stop, in this order:
//
//	lock the directory ─ listen for HTTP, gossip and raft ─ print "ready" ─ create or join
//	the cluster ─ … ─ SIGTERM ─ hand over to another leader ─ close streams and log ─ leave
//	gossip ─ unlock the directory
//
// # Files
//
// Below -data, beside the log in raft/:
//
//	lock        held while it runs, see package datadir
//	quern-jobtracker
//	            the marker of that package
//	cluster     id of its cluster, once it is known
//	candidate   exists from before the job tracker can become a voter until its log has
//	            state. If a voter's directory has neither, its votes are lost
//	staging/    the cluster's staging directory, for a single job tracker
//
// docs/running-a-cluster.md describes how to run a cluster.
package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
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
	if len(args) > 0 && args[0] == recoverCommand {
		return recoverLog(args[1:], out)
	}
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	return serve(ctx, o, out)
}

const about = `A single job tracker on loopback needs no flags. For three, which survive the loss of one, start on
each, with its own -id and addresses:

  jobtracker -id jt1 -listen 10.0.0.1:7400 -raft 10.0.0.1:7401 -gossip 10.0.0.1:7402 -insecure \
      -data /var/lib/quern -staging file:///shared/quern \
      -bootstrap-expect 3 -join 10.0.0.1:7402,10.0.0.2:7402,10.0.0.3:7402

If a cluster has lost most of its job trackers for good, ` + recoverSynopsis + `
makes one the only voter: see jobtracker recover -h.
`

// options has the checked flags.
type options struct {
	id                                        string
	listen, raft, gossip                      string
	advertise, raftAdvertise, gossipAdvertise string
	join                                      []string
	expect                                    int
	data, staging                             string
	scheduling                                wire.Scheduling
	pools                                     string // URL; empty: none
	poolsIgnore                               []string
	preemption                                bool
	period, lease, raftTimeout                time.Duration
	keep                                      time.Duration
	keepBytes                                 int64
	admins, adminGroups                       []string
	groups                                    string // file; empty: none
	viewACL                                   string
	asOwner                                   bool // submissions are staged and used as their owner, in HDFS
	limits                                    limits
	logging                                   daemon.Logging
	security                                  daemon.Security
	access                                    daemon.Access
}

func parse(args []string, out daemon.Output) (*options, error) {
	o := &options{limits: defaultLimits()}
	var join, admins, ignore string
	var keep int
	set := flag.NewFlagSet("jobtracker", flag.ContinueOnError)
	set.StringVar(&o.id, "id", "", "permanent `name` of this job tracker in its cluster (default the machine's name)")
	set.StringVar(&o.listen, "listen", "127.0.0.1:7400", "`host:port` for clients and task trackers")
	set.StringVar(&o.raft, "raft", "127.0.0.1:7401", "`host:port` for the log, which job trackers replicate")
	set.StringVar(&o.gossip, "gossip", "127.0.0.1:7402", "`host:port`, UDP and TCP, by which daemons find each other")
	set.StringVar(&o.advertise, "advertise", "", "`host[:port]` at which others reach -listen; its host also holds for -raft and -gossip (default the addresses that they listen on)")
	set.StringVar(&o.raftAdvertise, "raft-advertise", "", "`host[:port]` at which others reach -raft")
	set.StringVar(&o.gossipAdvertise, "gossip-advertise", "", "`host[:port]` at which others reach -gossip")
	set.StringVar(&join, "join", "", "gossip `addresses` of other daemons of the cluster, separated by commas")
	set.IntVar(&o.expect, "bootstrap-expect", 0, "create the cluster once `N` job trackers see each other (default 1 without -join); with -join alone, join an existing cluster")
	set.StringVar(&o.data, "data", "", "`directory` for the log, of this job tracker alone (default quern/data/jobtracker-ID in $XDG_STATE_HOME or ~/.local/state)")
	set.StringVar(&o.staging, "staging", "", "`URL` of a directory that all trackers and clients share (default below -data, for a single job tracker on loopback)")
	set.StringVar(&o.scheduling.Scheduler, "scheduler", "flex", "`name` of the scheduler, which shares slots among jobs: "+strings.Join(menu.Names(), ", "))
	set.StringVar(&o.scheduling.Metric, "metric", "sum-response", "`metric` that flex and flowflex minimize: sum- or max-, then response, stretch, tardy, tardiness, lateness or sla, then -weighted or nothing")
	set.StringVar(&o.scheduling.Delay, "delay", "dynamic", "`rule` for how long maps wait for a local slot: none, fixed=3s, paper or dynamic")
	set.StringVar(&o.pools, "pools", "", "`file` or URL of the pools: an allocation file of Hadoop's fair scheduler. The leader reads it again when it changes")
	set.StringVar(&ignore, "pools-ignore", "", "comma-separated `elements` of the pools file that may have no effect, although they may limit or protect something")
	set.BoolVar(&o.preemption, "preemption", false, "let pools that starve take slots from others, by the timeouts in the pools file")
	set.DurationVar(&o.period, "period", 500*time.Millisecond, "time between plans")
	set.DurationVar(&o.lease, "lease", 5*time.Second, "silence after which a task tracker counts as lost")
	set.DurationVar(&o.raftTimeout, "raft-timeout", 500*time.Millisecond, "silence of the leader after which job trackers elect another")
	set.IntVar(&keep, "keep", 7, "`days` to keep histories of ended jobs")
	set.Int64Var(&o.keepBytes, "keep-bytes", 1<<30, "most `bytes` of histories to keep")
	set.StringVar(&admins, "admins", "admin", "administrators, who may change any job and the cluster: a comma-separated list of `users`, then after a blank one of groups; no effect with -insecure. Without -tls-dir, this user is one, too")
	set.StringVar(&o.viewACL, "acl-view", "", "users who may see jobs that do not set mapreduce.job.acl-view-job, in the same `form`; \"*\" is all users (default only owners and administrators)")
	set.BoolVar(&o.asOwner, "hdfs-as-owner", false, "with -staging in HDFS: each user stages in a directory of their own, which this job tracker uses as that user; needs certificates, and the same flag of all daemons")
	set.StringVar(&o.groups, "groups", "", "`file` of the groups of users in the format of /etc/group, for ACLs. The job tracker reads it again when it changes (default groups have no effect)")
	set.Func("limits", "limits of jobs and requests, `NAME=VALUE,…`: see docs/reference.md; 0 means no limit", o.limits.set)
	o.security.Flags(set)
	o.access.Flags(set)
	o.logging.Flags(set)
	set.Bool("version", false, "print the version")
	if err := daemon.Parse(set, args, out, about); err != nil {
		return nil, err
	}
	err := o.security.Check([]string{"-listen", "-raft", "-gossip"}, []string{o.listen, o.raft, o.gossip})
	if err := errors.Join(err, o.access.Check()); err != nil {
		return nil, err
	}
	o.join, o.keep = daemon.SplitList(join), time.Duration(keep)*24*time.Hour
	o.poolsIgnore = daemon.SplitList(ignore)
	given := false
	set.Visit(func(f *flag.Flag) { given = given || f.Name == "admins" })
	if err := o.parseLists(admins); err != nil {
		return nil, err
	}
	if o.security.Insecure && o.viewACL != "" {
		return nil, daemon.Usagef("-acl-view has no effect with -insecure: without certificates, every client sees all jobs")
	}
	if o.asOwner && o.security.Insecure {
		return nil, daemon.Usagef("-hdfs-as-owner needs certificates: with -insecure, every client can name any owner")
	}
	if given && o.security.Insecure {
		return nil, daemon.Usagef("-admins has no effect with -insecure: without certificates, users are not identified and may do everything")
	}
	if err := admission.CheckScheduling(o.scheduling); err != nil {
		return nil, daemon.Usagef("-%v", err)
	}
	return o, o.check(keep)
}

// parseLists reads the flags with lists of users and groups.
func (o *options) parseLists(admins string) error {
	view, err := wire.ParseACL(o.viewACL)
	if err != nil {
		return daemon.Usagef("-acl-view: %v", err)
	}
	users, groups, _ := strings.Cut(strings.TrimRight(admins, " "), " ")
	o.admins, o.adminGroups = daemon.SplitList(users), daemon.SplitList(groups)
	if strings.HasSuffix(users, ",") && len(o.adminGroups) > 0 {
		return daemon.Usagef("-admins %q: after the blank come groups; write users without blanks between them", admins)
	}
	for _, name := range o.admins {
		if err := identity.CheckName(name); err != nil {
			return daemon.Usagef("-admins: %v", err)
		}
	}
	for _, name := range o.adminGroups {
		if err := wire.CheckACLName(name); err != nil {
			return daemon.Usagef("-admins: group %v", err)
		}
	}
	if o.groups == "" && len(view.Groups)+len(o.adminGroups) > 0 {
		return daemon.Usagef("-acl-view or -admins names the group %s: say with -groups who is in it", slices.Concat(view.Groups, o.adminGroups)[0])
	}
	return nil
}

func (o *options) check(keep int) (err error) {
	if o.id, err = daemon.ID(o.id); err != nil {
		return err
	}
	if err := daemon.CheckAddresses("-join", o.join); err != nil {
		return err
	}
	switch {
	case o.period <= 0:
		return daemon.Usagef("-period must be positive, got %v", o.period)
	case o.lease < 100*time.Millisecond:
		return daemon.Usagef("-lease must be at least 100ms, got %v", o.lease)
	case o.raftTimeout < 50*time.Millisecond:
		return daemon.Usagef("-raft-timeout must be at least 50ms, got %v", o.raftTimeout)
	case keep < 1 || o.keepBytes < 1:
		return daemon.Usagef("-keep and -keep-bytes must be at least 1, got %d and %d", keep, o.keepBytes)
	case o.expect < 0 || o.expect > maxVoters:
		return daemon.Usagef("-bootstrap-expect must be from 1 to %d, got %d", maxVoters, o.expect)
	case o.expect > 1 && len(o.join) == 0:
		return daemon.Usagef("-bootstrap-expect %d needs -join: give the gossip addresses of the other job trackers", o.expect)
	}
	if o.data == "" {
		if o.data, err = daemon.DefaultData(identity.JobTracker, o.id); err != nil {
			return err
		}
	}
	if o.data, err = local.Path(o.data); err != nil {
		return daemon.Usagef("-data: %v", err)
	}
	if o.pools != "" {
		if o.pools, err = builtin.FileSystems().Clean(o.pools); err != nil {
			return daemon.Usagef("-pools: %v", err)
		}
	}
	if len(o.join) == 0 && o.expect == 0 {
		o.expect = 1
	}
	return o.chooseStaging()
}

// ownStaging is the staging directory below -data.
const ownStaging = "staging"

// maxVoters limits -bootstrap-expect. More voters would only slow a cluster down.
const maxVoters = 9

// chooseStaging checks -staging. The default is below -data, but only for a single job tracker on
// loopback: other machines must be able to read the directory.
func (o *options) chooseStaging() (err error) {
	if o.staging == "" {
		if len(o.join) > 0 || o.expect != 1 || !o.onLoopback() {
			return daemon.Usagef("-staging is missing: only a single job tracker on loopback has a default")
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
