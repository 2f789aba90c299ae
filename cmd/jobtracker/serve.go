package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/cmd/internal/metrics"
	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/groups"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/pages"
	"github.com/quernmr/quern/jobtracker/replica"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/wire"
)

// layout lists the files and directories that a job tracker makes in -data.
var layout = datadir.Layout{
	Daemon: "job tracker", Marker: datadir.JobTracker,
	Dirs:  []string{filepath.Base(daemon.LogDir("")), ownStaging},
	Files: []string{clusterFile, "." + clusterFile + "*", candidateFile, "." + candidateFile + "*"},
}

// jobTracker is a running job tracker.
type jobTracker struct {
	*options
	log        *slog.Logger
	files      dfs.FS
	addr       string // advertised address of the API
	raftAddr   string // advertised address of the log
	cluster    string // id of the cluster in -data at the start; empty: none
	newCluster string // id of the cluster that it creates if it is the first leader; empty: -data has a cluster
	usersStage bool   // users stage in directories of their own

	audit     func(audit.Event)  // nil: no audit log
	users     *groups.File       // nil: no groups
	identity  *identity.Identity // nil: no TLS
	gossipKey []byte
	gossip    *gossip.Gossip
	replica   *replica.Replica
	server    *jobtracker.Server

	loops  sync.WaitGroup
	cancel context.CancelCauseFunc
}

// serve runs a job tracker until ctx ends or it fails.
func serve(ctx context.Context, o *options, out daemon.Output) error {
	j := &jobTracker{
		options: o,
		log:     o.logging.Logger(out.Stderr).With("id", o.id),
		files:   builtin.FileSystems(),
	}
	var err error
	daemon.FitMemory(j.log)
	if j.identity, j.gossipKey, err = o.security.Load(identity.JobTracker, o.id, j.log); err != nil {
		return err
	}
	if o.security.Automatic() {
		o.admins = append(o.admins, userstate.User())
	}
	if o.groups != "" {
		if j.users, err = groups.Open(o.groups, j.log); err != nil {
			return daemon.Usagef("-groups: %v", err)
		}
		for _, name := range o.unknownGroups(j.users.Table()) {
			j.log.Warn("a group of -acl-view or -admins has no line in the -groups file, so no user is in it", "group", name)
		}
	}
	record, closeAudit, err := o.security.Audit(j.identity, j.log)
	if err != nil {
		return err
	}
	defer closeAudit()
	j.audit = record
	dir, err := datadir.Open(o.data, layout)
	if err != nil {
		return err
	}
	defer dir.Close()
	daemon.WarnIfReadable(j.log, o.data)
	if j.cluster, err = readCluster(o.data); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return daemon.WithHint("-listen", err)
	}
	defer listener.Close()
	if err := j.findAddresses(listener); err != nil {
		return err
	}
	if err := j.startGossip(); err != nil {
		return err
	}
	defer j.gossip.Close()
	j.awaitJoin(ctx)
	if err := j.checkCluster(); err != nil {
		return err
	}
	if err := j.checkState(ctx); err != nil {
		return err
	}
	if err := j.openLog(); err != nil {
		return err
	}
	ready := func() {
		fmt.Fprintf(out.Stdout, "ready jobtracker %s http=%s raft=%s gossip=%s\n", o.id, j.addr, j.raftAddr, j.gossip.Addr())
	}
	return j.run(ctx, listener, ready)
}

func (j *jobTracker) findAddresses(listener net.Listener) (err error) {
	if j.addr, err = daemon.Advertised("-advertise", j.advertise, listener.Addr().String()); err != nil {
		return err
	}
	host := daemon.HostOf(j.advertise)
	if j.raftAdvertise == "" {
		j.raftAdvertise = host
	}
	if j.gossipAdvertise == "" {
		j.gossipAdvertise = host
	}
	if _, err := daemon.Advertised("-raft-advertise", j.raftAdvertise, j.raft); err != nil {
		return err
	}
	_, err = daemon.Advertised("-gossip-advertise", j.gossipAdvertise, j.options.gossip)
	return err
}

func (j *jobTracker) startGossip() (err error) {
	j.gossip, err = gossip.Start(gossip.Config{
		Self: gossip.Member{
			ID: j.id, Role: gossip.JobTracker, HTTP: j.addr, Expect: j.expect, Cluster: j.cluster,
		},
		Bind: j.options.gossip, Advertise: j.gossipAdvertise, Join: j.join, Key: j.gossipKey, Keys: j.identity.GossipKeys, Logger: j.log,
	})
	return daemon.WithHint("-gossip", err)
}

// openLog opens the log and makes the server.
func (j *jobTracker) openLog() error {
	raftAddr, err := daemon.Advertised("-raft-advertise", j.raftAdvertise, j.raft)
	if err != nil {
		return err
	}
	j.replica, err = replica.Open(replica.Config{
		ID: j.id, Dir: daemon.LogDir(j.data), Listen: j.raft, Advertise: raftAddr,
		Timeout: j.raftTimeout, Resolve: j.resolve, Logger: j.log,
		Serve: j.identity.Server(identity.JobTracker), Dial: j.identity.Dialer(identity.JobTracker),
	})
	if err != nil {
		return withCommand(daemon.WithHint("-raft", err), j.data, j.id, raftAddr)
	}
	j.raftAddr = j.replica.Addr()
	cfg := jobtracker.Config{
		ID: j.id, Addr: j.addr, Staging: j.staging, Log: j.replica, FS: j.files, Scheduling: j.scheduling, Pools: j.pools, PoolsIgnore: j.poolsIgnore, Preemption: j.preemption,
		Lease: j.lease, Period: j.period, Logger: j.log, History: true, Keep: j.keep, KeepBytes: j.keepBytes,
		Limits: j.limits.core, ViewACL: j.viewACL, AsOwner: j.asOwner, Groups: j.users != nil,
	}
	if err := j.shareStaging(); err != nil {
		return errors.Join(err, j.replica.Close())
	}
	if j.cluster == "" {
		if j.pools != "" && !j.knowsCluster() { // the pools in the log stay in force; a new cluster would run without limits
			if err := jobtracker.CheckPools(j.files, j.pools, j.poolsIgnore); err != nil {
				return errors.Join(fmt.Errorf("-pools: %w", err), j.replica.Close())
			}
		}
		// The first leader needs an id and a nonce for the new cluster.
		if cfg.Cluster, cfg.Nonce, err = jobtracker.NewCluster(j.files, j.staging); err != nil {
			return errors.Join(err, j.replica.Close())
		}
		j.newCluster = cfg.Cluster
	}
	j.server = jobtracker.New(cfg)
	return nil
}

// shareStaging lets users stage in HDFS. A cluster that exists may do without for now: its staging
// directory has been shared before, unless the flag is new.
func (j *jobTracker) shareStaging() (err error) {
	if !j.asOwner {
		return nil
	}
	if j.usersStage, err = jobtracker.ShareStaging(j.files, j.staging); err != nil && j.cluster != "" {
		j.log.Warn("cannot prepare the staging directory for -hdfs-as-owner", "error", err)
		err = nil
	}
	return err
}

// withCommand adds the flags to the recovery command in the error of an unreadable log.
func withCommand(err error, data, id, raftAddr string) error {
	if errors.Is(err, replica.ErrUnreadable) {
		return fmt.Errorf("%w -data %s -id %s -raft %s", err, data, id, raftAddr)
	}
	return err
}

// resolve returns the current address of a job tracker's log from gossip.
func (j *jobTracker) resolve(id string) string {
	m, _ := j.gossip.Find(gossip.JobTracker, id)
	return m.Raft
}

// run serves until ctx ends or a part fails, and closes the log.
func (j *jobTracker) run(parent context.Context, listener net.Listener, ready func()) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	j.cancel = cancel
	api := web.NewServer(pages.Mount(web.New(web.Config{
		ID: j.id, Server: j.server, Voters: voters{j.replica}, Log: j.replica, Logger: j.log, Audit: j.audit, Limits: j.limits.web,
		Identified: j.identity != nil, Admins: j.admins, AdminGroups: j.adminGroups, Groups: j.users.Table, UsersStage: j.usersStage,
		Metrics: metrics.Handler(j.log, metrics.JobTracker(j.server.Metrics, voters{j.replica})), Profiles: metrics.Profiles(),
	})), j.access.Names(j.addr, j.listen), j.log, j.audit)
	listener = listen.Limit(listener, j.access.Limits(j.log))
	if j.identity != nil {
		listener = identity.Listen(listener, j.identity.Server(identity.JobTracker, identity.TaskTracker, identity.Client, identity.Metrics))
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := api.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("serve the API: %w", err))
		}
	})
	j.runLoop(func() error { return j.enterCluster(ctx) })
	j.runLoop(func() error { return j.recordCluster(ctx) })
	j.runLoop(func() error { return j.watchRemoved(ctx) })
	j.runLoop(func() error { return j.watchSameID(ctx) })
	if j.users != nil {
		j.loops.Go(func() { j.users.Watch(ctx, groups.Period) })
	}
	ready()
	err := j.server.Run(ctx) // closes the log
	cancel(nil)
	api.Close() // streams have ended already
	serving.Wait()
	j.loops.Wait()
	j.removeNonce()
	if err != nil {
		return err
	}
	if parent.Err() == nil {
		return context.Cause(ctx)
	}
	j.log.Info("stopped")
	return nil
}

// removeNonce removes the nonce of a cluster that was never created: the log has no entry. While
// the staging directory has a second nonce, the cluster does not clean it.
func (j *jobTracker) removeNonce() {
	if entries, _ := j.replica.Stored(); j.newCluster == "" || entries > 0 {
		return
	}
	name := dfs.Join(j.staging, wire.StagingClusters, j.newCluster)
	if err := j.files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.log.Warn("cannot remove the nonce of a cluster that was not created", "file", name, "error", err)
	}
}

// runLoop runs a function in a goroutine until the job tracker stops. An error of the function
// stops the job tracker.
func (j *jobTracker) runLoop(run func() error) {
	j.loops.Go(func() {
		if err := run(); err != nil && !errors.Is(err, context.Canceled) {
			j.cancel(err)
		}
	})
}

// watchSameID logs when another process has the same -id.
func (j *jobTracker) watchSameID(ctx context.Context) error {
	return every(ctx, time.Minute, func() (more bool, err error) {
		if other, ok := j.gossip.Duplicate(); ok {
			j.log.Error("another job tracker has this one's -id: stop one of them", "its address", other.HTTP)
		}
		return true, nil
	})
}

// every calls a function after each period, until it wants no more, fails, or ctx ends.
func every(ctx context.Context, period time.Duration, do func() (more bool, err error)) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if more, err := do(); err != nil || !more {
			return err
		}
	}
}

// voters implements web.Voters.
type voters struct{ *replica.Replica }

func (v voters) Voters() []web.Voter {
	var all []web.Voter
	for _, voter := range v.Replica.Voters() {
		all = append(all, web.Voter{ID: voter.ID, Addr: voter.Addr})
	}
	for _, n := range v.Replica.Nonvoters() {
		all = append(all, web.Voter{ID: n.ID, Addr: n.Addr, Nonvoter: true})
	}
	return all
}

// VoterCount implements metrics.Log.
func (v voters) VoterCount() int { return len(v.Replica.Voters()) }

func (v voters) AddVoter(ctx context.Context, voter web.Voter) error {
	return apiError(v.Replica.AddVoter(ctx, replica.Voter{ID: voter.ID, Addr: voter.Addr}))
}

func (v voters) RemoveVoter(ctx context.Context, id string) error {
	return apiError(v.Replica.RemoveVoter(ctx, id))
}

// apiError converts errors of the log to errors that the API knows.
func apiError(err error) error {
	switch {
	case errors.Is(err, replica.ErrNotLeader):
		return fmt.Errorf("%w: %w", core.ErrNotLeader, err)
	case errors.Is(err, replica.ErrNotVoter):
		return web.ErrNotVoter
	case errors.Is(err, replica.ErrManyNonvoters):
		return fmt.Errorf("%w: %w", web.ErrCatchingUp, err)
	}
	return err
}
