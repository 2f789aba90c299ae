package pair

import (
	"errors"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// overHDFS compares an embedded job that reads and writes a real HDFS on this machine. Its
// daemons' processor time is in none of the figures but the elapsed time.
func (b *bench) overHDFS(name, program, file string) testbed.Part {
	return testbed.Part{Name: name, Measure: func() error {
		h, err := b.HDFS(64<<20, false, nil)
		if err != nil {
			return err
		}
		f, err := testbed.Client(h, nil, nil)
		if err != nil {
			return errors.Join(err, h.Close())
		}
		return errors.Join(b.jobOverHDFS(h, f, name, program, file), f.Close(), h.Close())
	}}
}

func (b *bench) jobOverHDFS(h *minicluster.Cluster, f dfs.FS, name, program, file string) error {
	in, out := h.URL()+"/in", h.URL()+"/out"
	if err := testbed.PutFile(h, b.Path(file), in+"/"+file, nil, nil); err != nil {
		return err
	}
	same := sameOutputIn(f, "")
	env := []string{"HADOOP_CONF_DIR=" + h.Conf(), "HADOOP_USER_NAME=" + minicluster.Superuser}
	run := func(r revision) func() (measured, error) {
		return func() (measured, error) {
			if err := f.RemoveAll(out); err != nil {
				return nil, err
			}
			figures, err := b.run(name, r, program, env, "-input", in, "-output", out)
			if err != nil {
				return nil, err
			}
			return figures, same(out)
		}
	}
	return b.compare(1, run(b.revisions[0]), run(b.revisions[1]))
}
