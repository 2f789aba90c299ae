// Package hdfs measures jobs over a real HDFS: the number of maps with local data, the cost of
// reads against the bare client library, the NameNode calls of a task, and word count and sort
// on a cluster of processes against local files. A NameNode, four DataNodes in two racks and
// task trackers beside them run on loopback, on this machine.
//
// Inputs come from one seed; the NameNode chooses the places of their blocks.
package hdfs

import (
	"fmt"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

type bench struct {
	*testbed.Bench
	hdfs *minicluster.Cluster
	fs   *hdfs.FS // of a process beside no DataNode
	made int      // directories in HDFS so far
}

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{}
	return testbed.Section{
		Name: "hdfs", About: "jobs and reads over a real HDFS",
		Runs: 3, Size: "512M",
		Programs: []string{"examples/wordcount", "examples/sort", "examples/grep", "integration/trial/paced"},
		Open:     b.open,
		Parts: []testbed.Part{
			{Name: "locality", Columns: []string{"maps", "delay", "data on", "node-local", "rack-local", "elsewhere", "bytes node-local", "time", "to reach"}, Measure: b.locality},
			{Name: "reading", Columns: []string{"figure", "dfs/hdfs", "bare library", "ratio", "to reach"}, Measure: b.reading},
			{Name: "calls", Columns: []string{"NameNode calls", "a task", "which", "to reach"}, Measure: b.calls},
			{Name: "jobs", Columns: []string{"job", "processes, HDFS", "embedded, local files", "ratio", "to reach"}, Measure: b.jobs},
		},
	}
}

func (b *bench) open(of *testbed.Bench) (err error) {
	b.Bench = of
	if b.hdfs, err = b.HDFS(64<<20, false, nil); err != nil {
		return err
	}
	b.AtEnd(b.hdfs.Close)
	if b.fs, err = testbed.Client(b.hdfs, nil, nil); err != nil {
		return err
	}
	b.AtEnd(b.fs.Close)
	return nil
}

// directory creates a new directory in HDFS and returns its URL.
func (b *bench) directory() (string, error) {
	b.made++
	name := fmt.Sprintf("%s/bench/%d", b.hdfs.URL(), b.made)
	return name, b.fs.MkdirAll(name)
}

// trackers starts a job tracker, and a task tracker beside each of the first DataNodes.
func (b *bench) trackers(n, slots int, flags ...string) (*testbed.Cluster, error) {
	return b.Cluster(testbed.Shape{
		Trackers: n, Maps: slots, Reduces: slots, HDFS: b.hdfs,
		JobTracker: append([]string{"-scheduler", "fifo", "-delay", "none"}, flags...),
	})
}

func jobCounter(j *web.Job, name string) int64  { return j.Counters[wire.JobCounters][name] }
func readCounter(j *web.Job, name string) int64 { return j.Counters[wire.ReadCounters][name] }
