package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/cmd/internal/metrics"
	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobfile"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/tasktracker"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

// serve runs a task tracker until ctx ends, it is drained or it fails.
func serve(ctx context.Context, o *options, out daemon.Output) error {
	log := o.logging.Logger(out.Stderr)
	daemon.FitMemory(log)
	self, gossipKey, err := o.security.Load(identity.TaskTracker, o.id, log)
	if err != nil {
		return err
	}
	if o.asOwner && self == nil {
		return daemon.Usagef("-hdfs-as-owner needs certificates (-tls-dir): without them every client can name any owner")
	}
	if o.isolation.Level == isolation.User && self == nil {
		return daemon.Usagef("-isolation user needs certificates (-tls-dir): without them every client can name any owner")
	}
	record, closeAudit, err := o.security.Audit(self, log)
	if err != nil {
		return err
	}
	defer closeAudit()
	for _, dir := range o.disks {
		daemon.WarnIfReadable(log, dir)
	}
	config := self.Dialer(identity.JobTracker)
	find := &finder{static: o.jobTrackers, open: func(ctx context.Context, addr string) (*wire.Conn, error) {
		return web.DialStream(ctx, addr, config)
	}}
	var g *gossip.Gossip
	if len(o.join) > 0 {
		if g, err = startGossip(o, self, gossipKey, log); err != nil {
			return daemon.WithHint("-gossip", err)
		}
		defer g.Close()
		find.gossip = g
	}
	files := hdfs.FromEnvironment() // logs in for workers
	defer files.Close()
	if o.security.Automatic() {
		o.admins = append(o.admins, userstate.User())
	}
	var tracker *tasktracker.Tracker
	collect := metrics.TaskTracker(func(ctx context.Context) (tasktracker.Metrics, error) { return tracker.Metrics(ctx) })
	tracker, err = tasktracker.New(tasktracker.Config{
		ID: o.id, Host: o.host, Rack: o.rack,
		Service: tasktracker.Service{
			Listen: o.listen, Advertise: o.advertised(),
			Serve: self.Server(identity.TaskTracker, identity.Client, identity.Metrics), Dial: self.Dialer(identity.TaskTracker),
			Names: o.access.Names(o.advertise, o.listen), Limits: o.access.Limits(log),
			Audit: record, Metrics: metrics.Handler(log, collect), Profiles: metrics.Profiles(), Admins: o.admins,
		},
		MapSlots: o.mapSlots, ReduceSlots: o.reduceSlots, Memory: o.memory, Cores: o.cores, Maximum: o.maximum, Dir: o.disks[0], Disks: o.disks, Staging: o.staging,
		FS: builtin.FileSystems(), Logs: tasktracker.Logs{Age: o.keep, Bytes: o.keepBytes, Attempt: o.attemptLogs},
		ShuffleRate: float64(o.shuffleRate), StopGrace: o.stopGrace, Variables: o.passEnv, Isolation: o.isolation, AttemptDisk: o.attemptDisk, Health: o.health,
		HDFS: tasktracker.HDFS{Delegate: files.Delegate, AsOwner: o.asOwner},
		Check: func(f *os.File, name string) error {
			_, err := jobfile.CheckFile(f, name)
			return err
		},
		Ready:  func(listening string) { o.ready(out, g, listening, log) },
		Logger: log,
	})
	if err != nil {
		return err
	}
	err = tracker.Run(ctx, find.dial)
	switch {
	case errors.Is(err, tasktracker.ErrDrained):
		fmt.Fprintf(out.Stdout, "drained tasktracker %s\n", o.id)
		log.Info("drained: the cluster needs nothing from this task tracker", "id", o.id)
	case err != nil && !errors.Is(err, context.Canceled):
		return daemon.WithHint("-listen", err)
	}
	log.Info("stopped", "id", o.id)
	return nil
}

func startGossip(o *options, self *identity.Identity, key []byte, log *slog.Logger) (*gossip.Gossip, error) {
	return gossip.Start(gossip.Config{
		Self: gossip.Member{ID: o.id, Role: gossip.TaskTracker},
		Bind: o.gossip, Advertise: o.gossipAdvertise, Join: o.join, Key: key, Keys: self.GossipKeys, Logger: log,
	})
}

// ready prints the ready line and publishes the address by gossip.
func (o *options) ready(out daemon.Output, g *gossip.Gossip, listening string, log *slog.Logger) {
	addr, err := daemon.Advertised("-advertise", o.advertise, listening)
	if err != nil {
		addr = listening
	}
	if g == nil {
		fmt.Fprintf(out.Stdout, "ready tasktracker %s http=%s\n", o.id, addr)
		return
	}
	fmt.Fprintf(out.Stdout, "ready tasktracker %s http=%s gossip=%s\n", o.id, addr, g.Addr())
	err = g.Update(func(m gossip.Member) gossip.Member {
		m.HTTP = addr
		return m
	})
	if err != nil {
		log.Warn("cannot publish the address by gossip", "error", err)
	}
}
