package hdfs

import (
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/wire"
)

// The blocks are in two files, so that their replicas can be on two nodes.
const blocks, files = 64, 2

// placement says which nodes have an input's blocks.
type placement struct {
	name  string
	nodes []int // DataNodes with one file each; nil: HDFS chooses two DataNodes per block
}

func placements() []placement {
	return []placement{
		{"four nodes, twice", nil},
		{"two nodes of a rack", []int{0, 1}},
		{"a node in each rack", []int{0, 2}},
	}
}

// workload is a job with a map for each block.
type workload struct {
	name, program string
	args          []string
	block         int64
}

func (b *bench) workloads() []workload {
	block := max(b.Bytes/blocks, 1<<20) / 512 * 512
	const small = 256 << 10
	return []workload{
		{fmt.Sprintf("grep, %.1f MB each", float64(block)/1e6), "grep", []string{"-e", input.Needle}, block},
		{"half a second each", "paced", []string{"-map-time", "500ms"}, small},
	}
}

// locality counts node-local, rack-local and remote maps on four trackers of two slots, each
// beside a DataNode.
func (b *bench) locality() error {
	for _, delay := range []string{"none", "fixed=3s"} {
		c, err := b.startCluster(len(b.hdfs.DataNodes), 2, "-delay", delay)
		if err != nil {
			return err
		}
		for _, w := range b.workloads() {
			for _, p := range placements() {
				if err = b.measureLocality(c, delay, w, p); err != nil {
					break
				}
			}
		}
		if err := errors.Join(err, c.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) measureLocality(c *testbed.Cluster, delay string, w workload, p placement) error {
	var node, rack, other, bytes []float64
	var took []time.Duration
	for range b.Runs {
		dir, err := b.writeInput(w.block, p)
		if err != nil {
			return err
		}
		t, err := c.Run(b.Ctx, append([]string{c.Program(w.program), "-input", dfs.Join(dir, "in"), "-output", dfs.Join(dir, "out")}, w.args...)...)
		if err != nil {
			return err
		}
		j, err := c.LastJob(b.Ctx)
		if err != nil {
			return err
		}
		maps := float64(jobCounter(j, wire.LaunchedMaps))
		if maps != blocks {
			return fmt.Errorf("%v maps were launched over %d blocks", maps, blocks)
		}
		nodeLocal, rackLocal, remote := readCounter(j, "BYTES_READ_NODE_LOCAL"), readCounter(j, "BYTES_READ_RACK_LOCAL"), readCounter(j, "BYTES_READ_REMOTE")
		node = append(node, float64(jobCounter(j, wire.DataLocalMaps))/maps)
		rack = append(rack, float64(jobCounter(j, wire.RackLocalMaps))/maps)
		other = append(other, float64(jobCounter(j, wire.OtherLocalMaps))/maps)
		bytes = append(bytes, float64(nodeLocal)/float64(nodeLocal+rackLocal+remote))
		took = append(took, t)
		if err := b.fs.RemoveAll(dir); err != nil {
			return err
		}
	}
	target := "–"
	if p.nodes == nil {
		target = map[string]string{"none": "≥ 90 %", "fixed=3s": "≥ 98 %"}[delay]
	}
	percent := func(list []float64) string { return fmt.Sprintf("%.0f %%", 100*testbed.Median(list)) }
	testbed.Row(w.name, delay, p.name, percent(node), percent(rack), percent(other), percent(bytes), testbed.Seconds(testbed.Median(took)), target)
	return nil
}

// writeInput writes the files of an input below dir/in and checks their nodes.
func (b *bench) writeInput(block int64, p placement) (dir string, err error) {
	local := b.Path(fmt.Sprintf("text%d", block*blocks/files))
	if err := input.Text(local, block*blocks/files); err != nil {
		return "", err
	}
	if dir, err = b.directory(); err != nil {
		return "", err
	}
	in := dfs.Join(dir, "in")
	if err := b.fs.Mkdir(in); err != nil {
		return "", err
	}
	for i := range files {
		var at *minicluster.Daemon
		copies := 2
		if p.nodes != nil {
			at, copies = b.hdfs.DataNodes[p.nodes[i]], 1
		}
		err := testbed.PutFile(b.hdfs, local, dfs.Join(in, fmt.Sprint(i)), at, map[string]string{
			"dfs.blocksize": fmt.Sprint(block), "dfs.replication": fmt.Sprint(copies)})
		if err != nil {
			return "", err
		}
	}
	return dir, b.checkPlacement(in, p)
}

// checkPlacement checks that the blocks of an input on two nodes are only there.
func (b *bench) checkPlacement(in string, p placement) error {
	if p.nodes == nil {
		return nil
	}
	located, err := b.fs.Locate(in)
	if err != nil {
		return err
	}
	for i, file := range located {
		want := b.hdfs.DataNodes[p.nodes[i]].ID
		for n, block := range file.Blocks {
			if len(block.Replicas) != 1 || block.Replicas[0].Host != want {
				return fmt.Errorf("block %d of %s is at %v, not at %s alone", n, path.Base(file.Name), block.Replicas, want)
			}
		}
	}
	return nil
}
