package hdfs_test

import (
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// Row 29: of two NameNodes the active one is killed while a job embedded and one
// on processes, with staging there too, are in the middle of their maps.
func TestJobFailover(t *testing.T) {
	c := own(t, func(cfg *minicluster.Config) { cfg.NameNodes, cfg.Racks = 2, []string{"/a", "/b"} })
	p := newPlace(t, c)
	content := text(8 * blockSize)
	in := p.put("in", content)
	inside := p.paced(in, "-early", "-gate", "-D", "quern.embedded.slots=2")
	p.start(quern{jobTrackers: 1, nodes: c.DataNodes, slots: 1, staging: dfs.Join(p.top, "staging")})
	outside := p.paced(in, "-early", "-gate", "-D", "mapreduce.job.reduces=2")
	for _, j := range []*job{inside, outside} {
		j.reached("m", "began", 2)
	}
	if err := c.NameNodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	inside.open()
	outside.open()
	if err := c.Activate(t.Context(), c.NameNodes[1]); err != nil {
		t.Fatal(err)
	}
	for _, j := range []*job{inside, outside} {
		j.succeed()
		j.once()
		p.counts(j.out, content)
	}
}
