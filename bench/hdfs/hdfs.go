// Package hdfs measures jobs over a real HDFS: the number of maps with local data, the cost of
// reads compared with the bare client library, and the NameNode calls of a task. It compares
// word count and sort on a cluster of processes with local files. A NameNode, four DataNodes in
// two racks and their task trackers run on loopback.
//
// Inputs come from one seed; the NameNode chooses the DataNodes of their blocks.
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
	hdfs        *minicluster.Cluster
	fs          *hdfs.FS // of a process without a local DataNode
	directories int      // in HDFS so far
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
			{Name: "locality", Columns: []string{"maps", "delay", "data on", "node-local", "rack-local", "remote", "bytes node-local", "time", "target"}, Measure: b.locality},
			{Name: "reading", Columns: []string{"figure", "dfs/hdfs", "bare library", "ratio", "target"}, Measure: b.reading},
			{Name: "calls", Columns: []string{"NameNode calls", "per task", "by method", "target"}, Measure: b.calls},
			{Name: "jobs", Columns: []string{"job", "processes, HDFS", "embedded, local files", "ratio", "target"}, Measure: b.jobs},
		},
	}
}

func (b *bench) open(base *testbed.Bench) (err error) {
	b.Bench = base
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
	b.directories++
	name := fmt.Sprintf("%s/bench/%d", b.hdfs.URL(), b.directories)
	return name, b.fs.MkdirAll(name)
}

// startCluster starts a job tracker, and a task tracker beside each of the first n DataNodes.
func (b *bench) startCluster(n, slots int, flags ...string) (*testbed.Cluster, error) {
	return b.Cluster(testbed.Shape{
		Trackers: n, Maps: slots, Reduces: slots, HDFS: b.hdfs,
		JobTrackerFlags: append([]string{"-scheduler", "fifo", "-delay", "none"}, flags...),
	})
}

func jobCounter(j *web.Job, name string) int64  { return j.Counters[wire.JobCounters][name] }
func readCounter(j *web.Job, name string) int64 { return j.Counters[wire.ReadCounters][name] }
