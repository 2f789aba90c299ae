// Package compose_test runs jobs on the cluster of docker-compose.yml, over HDFS, from the
// client's container. It injects the faults of a real cluster: it kills processes, and
// disconnects, pauses, slows down and restarts containers. The output must equal an embedded
// run's.
//
//	make cluster-test
package compose_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/compose/stack"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/web"
)

const (
	// These limits only end what hangs. go test leaves time to log errors and remove leftovers.
	imagesLimit = 15 * time.Minute // includes downloads
	limit       = 30 * time.Minute

	network  = "172.30.78"
	namenode = network + ".10"
)

// TestCluster is one test, because a cluster takes long to start. After each part, all daemons
// must be ready again. With -short it skips parts that integration/cluster tests too.
func TestCluster(t *testing.T) {
	if os.Getenv("QUERN_COMPOSE") == "" {
		t.Skip("it needs a Docker engine: make cluster-test")
	}
	c := start(t)
	for _, part := range []struct {
		name string
		run  func(*cluster)
		long bool // skipped with -short
	}{
		{"images", images, false},
		{"idle", idle, false},
		{"jobs", jobs, false},
		{"leader killed", leaderKilled, true},
		{"task tracker killed", trackerKilled, true},
		{"DataNode killed", dataNodeKilled, true},
		{"machine disconnected", machineDisconnected, false},
		{"leader paused", leaderPaused, true},
		{"one-way partition", oneWayPartition, false},
		{"slow machine", slowMachine, false},
		{"memory", memoryLimit, false},
		{"disk full", diskFull, false},
		{"NameNode restarted", nameNodeRestarted, false},
		{"rolling restart", rollingRestart, false},
		{"down and up", downAndUp, false},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			if part.long && testing.Short() {
				t.Skip("make cluster-test runs it")
			}
			began := time.Now()
			forPart := *c
			forPart.t = t
			part.run(&forPart)
			forPart.awaitHealthy()
			t.Logf("took %v", time.Since(began).Round(100*time.Millisecond))
		}) {
			c.logDaemons()
			return
		}
	}
}

// cluster is the running cluster, for one part of the test.
type cluster struct {
	*stack.Stack
	t        *testing.T
	ctx      context.Context
	project  string
	dir      string // on this machine
	files    *hdfs.FS
	identity *identity.Identity
	jobCount *int // for the jobs' names
}

// start starts the cluster. When the test ends, it stops the cluster and checks for
// leftovers.
func start(t *testing.T) *cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), imagesLimit)
	t.Cleanup(cancel)
	c := &cluster{t: t, ctx: ctx, dir: t.TempDir(), project: fmt.Sprintf("quern-test-%d", os.Getpid()), jobCount: new(int)}
	if err := errors.Join(os.Mkdir(c.traces(), 0o777), os.Chmod(c.traces(), 0o777), os.Chmod(c.dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	var err error
	c.Stack, err = stack.New(ctx, stack.Config{
		Project: c.project, Dir: c.dir, Net: network, Tag: "test", Files: []string{"docker-compose.test.yml"},
		Jobs: []string{trial.Paced, "integration/embedded/faulty"}, Env: []string{"QUERN_TRACES=" + c.traces(), "QUERN_LEASE=15s"}, // longer than a busy machine delays a tracker
	})
	skipOrFail(t, err)
	c.images()
	c.ctx, cancel = context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	skipOrFail(t, c.Certificates())
	c.identity, err = identity.Load(filepath.Join(c.dir, "certs", "client-admin"), identity.Client, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.files = c.openHDFS()
	t.Cleanup(c.stop)
	c.up()
	return c
}

// images builds all images. It compiles programs while it builds HDFS's image, which waits for
// the network.
func (c *cluster) images() {
	c.t.Helper()
	began := time.Now()
	built := make(chan error, 1)
	go func() { built <- c.Programs(c.ctx) }()
	base, image := "debian:bookworm-slim", os.Getenv(stack.HDFSVariable)
	var err error
	if image == "" || image == stack.BuildHDFS { // needs no registry
		image = stack.BuildHDFS
		base, err = c.Debian(c.ctx)
	}
	if err == nil {
		err = c.HDFS(c.ctx, image)
	}
	hdfs := time.Since(began)
	if failed := <-built; failed != nil {
		c.t.Fatal(failed)
	}
	skipOrFail(c.t, err)
	if err := c.Images(c.ctx, base); err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("image of HDFS after %v, all images after %v", hdfs.Round(time.Second), time.Since(began).Round(time.Second))
}

func skipOrFail(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, stack.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// up starts everything and measures the time until a job is accepted.
func (c *cluster) up() {
	c.t.Helper()
	began := time.Now()
	if err := c.Up(c.ctx); err != nil {
		c.logDaemons()
		c.t.Fatal(err)
	}
	started := time.Since(began)
	j := c.paced(4)
	c.await("accepted job", func() bool { return len(c.list()) > 0 })
	c.t.Logf("up: containers %v, first job accepted %v", started.Round(100*time.Millisecond), time.Since(began).Round(100*time.Millisecond))
	j.checkSuccess()
	c.awaitHealthy()
}

// stop stops the cluster. No container, network or volume of the project may be left.
func (c *cluster) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), trial.Deadline)
	defer cancel()
	c.files.Close()
	if err := c.Down(ctx, true); err != nil {
		c.t.Error(err)
	}
	left, err := c.Leftovers(ctx)
	if err != nil || len(left) > 0 {
		c.t.Errorf("left behind: %q, %v", left, err)
	}
}

// openHDFS returns a client of HDFS on this machine. It also writes a configuration for programs
// here, with addresses, because they cannot resolve the containers' host names.
func (c *cluster) openHDFS() *hdfs.FS {
	c.t.Helper()
	conf := fmt.Sprintf(`<configuration><property><name>fs.defaultFS</name><value>hdfs://%s:8020</value></property></configuration>`, namenode)
	err := os.MkdirAll(c.conf(), 0o755)
	if err = errors.Join(err, os.WriteFile(filepath.Join(c.conf(), "core-site.xml"), []byte(conf), 0o644)); err != nil {
		c.t.Fatal(err)
	}
	read, err := hdfs.ReadConf(c.conf())
	if err != nil {
		c.t.Fatal(err)
	}
	return hdfs.New(hdfs.Options{Conf: read, User: "quern", FirstRetryFor: trial.Deadline, RetryFor: trial.Deadline})
}

func (c *cluster) conf() string   { return filepath.Join(c.dir, "conf") }
func (c *cluster) traces() string { return filepath.Join(c.dir, "traces") }

// docker runs a command that must succeed.
func (c *cluster) docker(args ...string) string {
	c.t.Helper()
	out, err := c.Docker(c.ctx, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// container returns the container of a service.
func (c *cluster) container(service string) string {
	c.t.Helper()
	id, err := c.Container(c.ctx, service)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// inspect returns docker's description of a service's container.
func (c *cluster) inspect(service, format string) string {
	c.t.Helper()
	return c.docker("inspect", "-f", format, c.container(service))
}

// pid returns the daemon's process number on this machine: the child of docker's init, if the
// service has one.
func (c *cluster) pid(service string) string {
	c.t.Helper()
	pid := c.inspect(service, "{{.State.Pid}}")
	if c.inspect(service, "{{.HostConfig.Init}}") != "true" {
		return pid
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%s/task/%s/children", pid, pid))
	if err != nil || len(strings.Fields(string(children))) == 0 {
		c.t.Fatalf("%s has no daemon: %q, %v", service, children, err)
	}
	return strings.Fields(string(children))[0]
}

// await waits until a condition holds, or fails the test. Each look at the cluster costs some
// connections with TLS, or processes.
func (c *cluster) await(what string, holds func() bool) {
	c.t.Helper()
	if !trial.Poll(trial.Deadline, 300*time.Millisecond, func() bool {
		if err := c.ctx.Err(); err != nil {
			c.t.Fatalf("%s: %v", what, err)
		}
		return holds()
	}) {
		c.t.Fatalf("waited %v without success for: %s", trial.Deadline, what)
	}
}

// statusOf returns a job tracker's own status of the cluster; nil: no answer. It does not use
// mrsubmit, which would ask the leader.
func (c *cluster) statusOf(id string) *web.Cluster {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address(id)+":7400/v1/cluster", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: c.identity.Dialer(identity.JobTracker), DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return nil
	}
	defer answer.Body.Close()
	status := new(web.Cluster)
	if err := json.NewDecoder(answer.Body).Decode(status); err != nil {
		return nil
	}
	return status
}

// leaderStatus returns the status from a leader other than the given job trackers; nil: none.
func (c *cluster) leaderStatus(except ...string) *web.Cluster {
	c.t.Helper()
	for _, id := range stack.JobTrackers() {
		if slices.Contains(except, id) {
			continue
		}
		if status := c.statusOf(id); status != nil && status.IsLeader {
			return status
		}
	}
	return nil
}

// leader waits for a leader other than the given job trackers.
func (c *cluster) leader(except ...string) string {
	c.t.Helper()
	leader := ""
	c.await("leader", func() bool {
		if status := c.leaderStatus(except...); status != nil {
			leader = status.Leader
		}
		return leader != ""
	})
	return leader
}

// tracker returns the leader's status of a task tracker; nil: unknown.
func (c *cluster) tracker(id string) *web.Tracker {
	c.t.Helper()
	status := c.leaderStatus()
	if status == nil {
		return nil
	}
	for i := range status.Trackers {
		if status.Trackers[i].ID == id {
			return &status.Trackers[i]
		}
	}
	return nil
}

// list returns the jobs that mrsubmit lists.
func (c *cluster) list() (jobs []web.Job) {
	c.t.Helper()
	out, err := c.Docker(c.ctx, "exec", c.container("client"), "mrsubmit", "list", "-json")
	if err != nil {
		return nil
	}
	for dec := json.NewDecoder(strings.NewReader(out)); dec.More(); {
		var part []web.Job
		if err := dec.Decode(&part); err != nil {
			c.t.Fatalf("list of jobs: %v\n%s", err, out)
		}
		jobs = append(jobs, part...)
	}
	return jobs
}

// awaitHealthy waits until every daemon is ready.
func (c *cluster) awaitHealthy() {
	c.t.Helper()
	var missing string
	defer func() {
		if c.t.Failed() {
			c.t.Logf("the cluster lacks %s", missing)
		}
	}()
	c.await("ready daemons", func() bool {
		missing = c.notReady()
		return missing == ""
	})
}

// notReady describes a daemon that is not ready yet; empty: all are ready.
func (c *cluster) notReady() string {
	status := c.leaderStatus()
	if status == nil {
		return "a leader"
	}
	healthy := 0
	for i := range status.Trackers {
		if t := &status.Trackers[i]; t.Connected && t.MapSlots == 2 && t.Trouble == "" && t.Excluded == "" {
			healthy++
		}
	}
	if healthy < len(stack.TaskTrackers()) {
		return fmt.Sprintf("healthy task trackers: %+v", status.Trackers)
	}
	for _, id := range stack.JobTrackers() {
		if follower := c.statusOf(id); follower == nil || follower.Leader != status.Leader || follower.Epoch != status.Epoch {
			return fmt.Sprintf("%s as a follower of %s: %+v", id, status.Leader, follower)
		}
	}
	if live := c.liveDataNodes(); live < len(stack.Nodes()) {
		return fmt.Sprintf("live DataNodes: %d", live)
	}
	return ""
}

// liveDataNodes returns the NameNode's number of live DataNodes; 0 in safe mode.
func (c *cluster) liveDataNodes() int {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+namenode+":9870/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	var doc struct {
		Beans []struct {
			NumLiveDataNodes int
			FSState          string
		} `json:"beans"`
	}
	if json.NewDecoder(answer.Body).Decode(&doc) != nil || len(doc.Beans) != 1 || doc.Beans[0].FSState != "Operational" {
		return 0
	}
	return doc.Beans[0].NumLiveDataNodes
}

// logDaemons logs the last lines of every daemon.
func (c *cluster) logDaemons() {
	services := append(append([]string{"namenode"}, stack.JobTrackers()...), stack.TaskTrackers()...)
	for _, service := range services {
		id, err := c.Container(c.ctx, service)
		if err != nil {
			c.t.Logf("== %s: %v", service, err)
			continue
		}
		out, err := c.DockerCombined(c.ctx, "logs", "--tail", "30", id)
		c.t.Logf("== %s (%v)\n%s", service, err, out)
	}
}
