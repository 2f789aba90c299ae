package hdfs_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// mapsByLocality returns the last job's numbers of data-local, rack-local and other maps.
func (p *platform) mapsByLocality(maps int64) (data, rack, other int64) {
	p.t.Helper()
	j := p.lastJob()
	data, rack, other = jobCounter(j, "DATA_LOCAL_MAPS"), jobCounter(j, "RACK_LOCAL_MAPS"), jobCounter(j, "OTHER_LOCAL_MAPS")
	if data+rack+other != maps || jobCounter(j, "TOTAL_LAUNCHED_MAPS") != maps {
		p.t.Errorf("%d data-local, %d rack-local and %d other maps of %d, want %d in all", data, rack, other,
			jobCounter(j, "TOTAL_LAUNCHED_MAPS"), maps)
	}
	return data, rack, other
}

// A job's counters show its maps, and the bytes that they read, by locality. With data on two of
// four nodes and no delay rule, maps on the other nodes are rack-local or remote.
func TestLocality(t *testing.T) {
	c := cluster(t)
	const splits, slots = 16, 2
	for _, x := range []struct {
		name  string
		nodes []int // that have the data
		racks bool  // trackers have the flag -rack; otherwise they use HDFS's racks
		delay string
		check func(data, rack, other int64) bool
	}{
		// Without delay, the first maps fill all slots, so each node runs at least slots maps.
		{"everywhere", []int{0, 1, 2, 3}, false, "none", func(data, rack, other int64) bool { return data >= 4*slots }},
		{"one-rack", []int{0, 1}, true, "none", func(data, rack, other int64) bool { return data >= 2*slots && other >= 2*slots }},
		{"both-racks", []int{0, 2}, true, "none", func(data, rack, other int64) bool { return data >= 2*slots && rack >= 2*slots }},
		{"waiting", []int{0, 1}, true, "fixed=5m", func(data, rack, other int64) bool { return data == splits }},
	} {
		t.Run(x.name, func(t *testing.T) {
			p := newPlatform(t, c)
			content := longLines(splits / len(x.nodes) * blockSize)
			for _, i := range x.nodes {
				node := c.DataNodes[i]
				name := p.put("in/"+node.ID, content, withProperty("dfs.replication", "1"), dialFrom(node))
				checkOnlyOn(t, node, awaitReplicas(t, p.fs, name, 1))
			}
			p.start(daemonShape{traces: true, jobTrackers: 1, nodes: c.DataNodes, slots: slots, racks: x.racks, flags: []string{"-delay", x.delay}})
			running := 4 * slots
			if x.delay != "none" {
				running = 2 * slots
			}
			j := p.paced(dfs.Join(p.top, "in"), "-map-only", "-gate")
			j.AwaitTraces("m", "began", running)
			j.OpenGate()
			j.Succeed()
			data, rack, other := p.mapsByLocality(splits)
			t.Logf("%d data-local maps, %d rack-local, %d other", data, rack, other)
			if !x.check(data, rack, other) {
				t.Errorf("%d data-local maps, %d rack-local, %d other", data, rack, other)
			}
			p.checkReadBytes(splits, data, rack, other)
			p.checkOutput(j.Out, bytes.Repeat(content, len(x.nodes)))
			status, err := p.client.Cluster(p.ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range status.Trackers {
				for _, node := range c.DataNodes {
					if one.Host == node.ID && one.Rack != node.Rack {
						t.Errorf("tracker %s has rack %q, want %q", one.ID, one.Rack, node.Rack)
					}
				}
			}
		})
	}
}

// checkReadBytes checks the bytes by locality. Each map reads its split and, unless it is the last
// of a file, the beginning of the next split.
func (p *platform) checkReadBytes(maps, data, rack, other int64) {
	p.t.Helper()
	j := p.lastJob()
	const beyond = 1 << 20 // bytes of the next split, at most: one read
	for name, n := range map[string]int64{"NODE_LOCAL": data, "RACK_LOCAL": rack, "REMOTE": other} {
		got := readCounter(j, "BYTES_READ_"+name)
		if got < n*blockSize || got > n*(blockSize+beyond) {
			p.t.Errorf("%d maps of %d bytes each read %d bytes %s", n, blockSize, got, name)
		}
	}
	attempts, err := p.client.Attempts(p.ctx, p.lastID())
	if err != nil {
		p.t.Fatal(err)
	}
	for _, a := range attempts.Items {
		if strings.Contains(a.ID, "_m_") && a.Level == "" {
			p.t.Errorf("attempt %s has no locality", a.ID)
		}
	}
}

// checkOnlyOn checks that no other DataNode has the blocks.
func checkOnlyOn(t *testing.T, d *minicluster.Daemon, blocks []dfs.Block) {
	t.Helper()
	for _, b := range blocks {
		if len(b.Replicas) != 1 || b.Replicas[0].Host != d.ID {
			t.Fatalf("block %+v is not only on %s", b, d.ID)
		}
	}
}

// Small files of one node share a map, and the rest of a rack does, as with Hadoop's CombineTextInputFormat.
func TestSmallFilesByPlace(t *testing.T) {
	c := cluster(t)
	p := newPlatform(t, c)
	const size = 60_000
	put := func(name string, node *minicluster.Daemon) {
		url := p.put(name, longLines(size), withProperty("dfs.replication", "1"), dialFrom(node))
		checkOnlyOn(t, node, awaitReplicas(t, p.fs, url, 1))
	}
	for i, n := range []int{0, 2, 1, 3} { // in the order of names, neighbours are on other nodes and racks
		put(fmt.Sprintf("racks/%d", i), c.DataNodes[n])
		for k := range 4 {
			put(fmt.Sprintf("nodes/%d-%d", k, i), c.DataNodes[n])
		}
	}
	p.start(daemonShape{jobTrackers: 1, nodes: c.DataNodes, slots: 1, racks: true, flags: []string{"-delay", "fixed=5m"}})
	for _, j := range []struct {
		in               string
		maps, node, rack int64
	}{
		{"nodes", 8, 16 * size, 0},
		{"racks", 2, 2 * size, 2 * size},
	} {
		p.submit("grep", "-e", "x", "-input", dfs.Join(p.top, j.in), "-output", dfs.Join(p.top, "out-"+j.in), "-D", "mapreduce.input.fileinputformat.split.maxsize=131072",
			"-D", "mapreduce.map.speculative=false").Succeed() // a second attempt would also count as launched
		job := p.lastJob()
		if maps := jobCounter(job, "TOTAL_LAUNCHED_MAPS"); maps != j.maps {
			t.Errorf("%s: %d maps, want %d", j.in, maps, j.maps)
		}
		node, rack, remote := readCounter(job, "BYTES_READ_NODE_LOCAL"), readCounter(job, "BYTES_READ_RACK_LOCAL"), readCounter(job, "BYTES_READ_REMOTE")
		if node != j.node || rack != j.rack || remote != 0 {
			t.Errorf("%s: %d bytes from the node, %d from its rack, %d from others; want %d, %d and 0", j.in, node, rack, remote, j.node, j.rack)
		}
	}
}
