package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/replica"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// layout is what a job tracker makes below -data.
var layout = datadir.Layout{
	Daemon: "job tracker", Marker: "quern-jobtracker",
	Dirs:  []string{filepath.Base(daemon.LogDir("")), ownStaging},
	Files: []string{clusterFile, "." + clusterFile + "*", candidateFile, "." + candidateFile + "*"},
}

// jobTracker is a running one.
type jobTracker struct {
	*options
	log      *slog.Logger
	files    dfs.FS
	addr     string // of the API, as others dial it
	raftAddr string // of the log, likewise
	cluster  string // that -data belonged to at the start; empty: none
	begins   string // id of the cluster that it would begin; empty: none

	who       *identity.Identity // nil: not protected
	gossipKey []byte
	gossip    *gossip.Gossip
	replica   *replica.Replica
	server    *jobtracker.Server

	loops  sync.WaitGroup
	cancel context.CancelCauseFunc
}

// serve runs a job tracker until ctx ends or it cannot go on.
func serve(ctx context.Context, o *options, out daemon.Output) error {
	j := &jobTracker{
		options: o,
		log:     daemon.Logger(out.Stderr, o.verbose).With("id", o.id),
		files:   builtin.FileSystems(),
	}
	var err error
	if j.who, j.gossipKey, err = o.security.Load(identity.JobTracker, o.id, j.log); err != nil {
		return err
	}
	dir, err := datadir.Open(o.data, layout)
	if err != nil {
		return err
	}
	defer dir.Close()
	daemon.WarnOpen(j.log, o.data)
	if j.cluster, err = readCluster(o.data); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return daemon.Bound("-listen", err)
	}
	defer listener.Close()
	if err := j.findAddresses(listener); err != nil {
		return err
	}
	if err := j.startGossip(); err != nil {
		return err
	}
	defer j.gossip.Close()
	j.metOthers(ctx)
	if err := j.avoidOtherClusters(); err != nil {
		return err
	}
	if err := j.avoidLostState(ctx); err != nil {
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
		Bind: j.options.gossip, Advertise: j.gossipAdvertise, Join: j.join, Key: j.gossipKey, Logger: j.log,
	})
	return daemon.Bound("-gossip", err)
}

// openLog opens the log and makes the server that works with it.
func (j *jobTracker) openLog() error {
	raftAddr, err := daemon.Advertised("-raft-advertise", j.raftAdvertise, j.raft)
	if err != nil {
		return err
	}
	j.replica, err = replica.Open(replica.Config{
		ID: j.id, Dir: daemon.LogDir(j.data), Listen: j.raft, Advertise: raftAddr,
		Timeout: j.raftTimeout, Resolve: j.resolve, Logger: j.log,
		Serve: j.who.Server(identity.JobTracker), Dial: j.who.Dialer(identity.JobTracker),
	})
	if err != nil {
		return goOn(daemon.Bound("-raft", err), j.data, j.id, raftAddr)
	}
	j.raftAddr = j.replica.Addr()
	cfg := jobtracker.Config{
		ID: j.id, Addr: j.addr, Staging: j.staging, Log: j.replica, FS: j.files, Scheduling: j.scheduling, Pools: j.pools,
		Lease: j.lease, Period: j.period, Logger: j.log, History: true, Keep: j.keep, KeepBytes: j.keepBytes,
	}
	if j.cluster == "" {
		// Whoever leads first needs an id and a nonce for a cluster that begins.
		if cfg.Cluster, cfg.Nonce, err = jobtracker.NewCluster(j.files, j.staging); err != nil {
			return errors.Join(err, j.replica.Close())
		}
		j.begins = cfg.Cluster
	}
	j.server = jobtracker.New(cfg)
	return nil
}

// goOn adds to the error of a log that cannot be opened the command that goes on with it,
// where there is one.
func goOn(err error, data, id, raftAddr string) error {
	if errors.Is(err, replica.ErrUnreadable) {
		return fmt.Errorf("%w -data %s -id %s -raft %s", err, data, id, raftAddr)
	}
	return err
}

// resolve finds a job tracker's log where it is now.
func (j *jobTracker) resolve(id string) string {
	m, _ := j.gossip.Find(gossip.JobTracker, id)
	return m.Raft
}

// run serves with everything open, and closes the log.
func (j *jobTracker) run(parent context.Context, listener net.Listener, ready func()) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	j.cancel = cancel
	api := web.NewServer(web.New(web.Config{ID: j.id, Server: j.server, Voters: voters{j.replica}, Log: j.replica, Logger: j.log, Identified: j.who != nil, Admins: j.admins}), j.log)
	if j.who != nil {
		listener = tls.NewListener(listener, j.who.Server(identity.JobTracker, identity.TaskTracker, identity.Client))
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := api.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cancel(fmt.Errorf("serve the API: %w", err))
		}
	})
	j.loop(func() error { return j.begin(ctx) })
	j.loop(func() error { return j.rememberCluster(ctx) })
	j.loop(func() error { return j.watchTwins(ctx) })
	ready()
	err := j.server.Run(ctx) // which closes the log
	cancel(nil)
	api.Close() // streams have ended, answers have not long to go
	serving.Wait()
	j.loops.Wait()
	j.takeNonceBack()
	if err != nil {
		return err
	}
	if parent.Err() == nil {
		return context.Cause(ctx)
	}
	j.log.Info("stopped")
	return nil
}

// takeNonceBack removes the nonce of a cluster that cannot have begun, as nothing
// was ever written to the log here. Where another cluster seems to share the
// staging directory, nothing in it is tidied.
func (j *jobTracker) takeNonceBack() {
	if entries, _ := j.replica.Stored(); j.begins == "" || entries > 0 {
		return
	}
	name := dfs.Join(j.staging, wire.StagingClusters, j.begins)
	if err := j.files.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.log.Warn("remove a nonce that is not needed", "file", name, "error", err)
	}
}

// loop runs something beside the server, whose failure ends it.
func (j *jobTracker) loop(run func() error) {
	j.loops.Go(func() {
		if err := run(); err != nil && !errors.Is(err, context.Canceled) {
			j.cancel(err)
		}
	})
}

// watchTwins says when another process calls itself as this one does.
func (j *jobTracker) watchTwins(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if twin, ok := j.gossip.Duplicate(); ok {
				j.log.Error("another job tracker has this one's -id: one of them must go", "its address", twin.HTTP)
			}
		}
	}
}

// voters lets the API change who votes.
type voters struct{ *replica.Replica }

func (v voters) Voters() []web.Voter {
	var all []web.Voter
	for _, one := range v.Replica.Voters() {
		all = append(all, web.Voter(one))
	}
	return all
}

func (v voters) AddVoter(ctx context.Context, voter web.Voter) error {
	return told(v.Replica.AddVoter(ctx, replica.Voter(voter)))
}

func (v voters) RemoveVoter(ctx context.Context, id string) error {
	return told(v.Replica.RemoveVoter(ctx, id))
}

// told is the log's error as the API knows it: clients look for the leader, or see
// that a vote has gone.
func told(err error) error {
	switch {
	case errors.Is(err, replica.ErrNotLeader):
		return fmt.Errorf("%w: %w", core.ErrNotLeader, err)
	case errors.Is(err, replica.ErrNotVoter):
		return web.ErrNotVoter
	}
	return err
}
