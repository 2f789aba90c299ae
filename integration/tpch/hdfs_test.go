package tpch_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/tpch/peers"
)

// TestHDFS: answers are the same with tables and small sides in HDFS, and with a flow's
// intermediate results there.
func TestHDFS(t *testing.T) {
	jars, err := minicluster.Fetch(t.Context())
	if errors.Is(err, minicluster.ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := minicluster.Start(t.Context(), minicluster.Config{Jars: jars, Dir: t.TempDir(), Racks: []string{"/a"}, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	}()
	remote := cluster.URL() + "/tpch"
	put(t, cluster, remote)
	t.Setenv("HADOOP_CONF_DIR", cluster.Conf())
	t.Setenv("HADOOP_USER_NAME", minicluster.Superuser)
	local := writeSmall(t)
	locally := make(map[string]string) // answers by query
	for _, query := range []string{"1", "5"} {
		var answers []string
		for _, tables := range []string{local, remote} {
			out := filepath.Join(t.TempDir(), "out")
			if exit, stderr := run(t, "-query", query, "-tables", tables, "-output", out); exit != 0 {
				t.Fatalf("query %s of %s: exit %d\n%s", query, tables, exit, stderr)
			}
			answers = append(answers, answer(t, out))
		}
		if answers[0] != answers[1] || answers[0] == "" {
			t.Errorf("query %s: from local files\n%s\nfrom HDFS\n%s", query, answers[0], answers[1])
		}
		locally[query] = answers[0]
	}
	out := remote + "/out"
	if exit, stderr := run(t, "-query", "5", "-tables", local, "-output", out, "-D", "quern.flow.keep=true"); exit != 0 {
		t.Fatalf("exit %d\n%s", exit, stderr)
	}
	if got := answerInHDFS(t, cluster, out+"/answer"); got != locally["5"] || got == "" {
		t.Errorf("with intermediate results in HDFS\n%s\nwant\n%s", got, locally["5"])
	}
	checkRefused(t, []string{"no file matches", remote + "/none/lineitem"}, "-query", "6", "-tables", remote+"/none")
}

// answerInHDFS returns the joined part files of a directory in HDFS.
func answerInHDFS(t *testing.T, cluster *minicluster.Cluster, dir string) string {
	t.Helper()
	f := connect(t, cluster)
	defer f.Close()
	infos, err := f.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, info := range infos {
		if !strings.HasPrefix(dfs.Base(info.Name), "part-r-") {
			continue
		}
		file, err := f.Open(info.Name)
		if err == nil {
			_, err = io.Copy(&all, file)
			err = errors.Join(err, file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

func connect(t *testing.T, cluster *minicluster.Cluster) *hdfs.FS {
	t.Helper()
	conf, err := hdfs.ReadConf(cluster.Conf())
	if err != nil {
		t.Fatal(err)
	}
	return hdfs.New(hdfs.Options{Conf: conf, User: minicluster.Superuser})
}

// put writes the tables of [peers.Small] to HDFS, and one of them as a directory.
func put(t *testing.T, cluster *minicluster.Cluster, dir string) {
	t.Helper()
	f := connect(t, cluster)
	defer f.Close()
	if err := f.MkdirAll(dir + "/supplier"); err != nil {
		t.Fatal(err)
	}
	for name, rows := range peers.Small(30) {
		path := dir + "/" + name + ".tbl"
		if name == "supplier" {
			path = dir + "/supplier/supplier.1.tbl"
		}
		w, err := f.Create(path)
		if err == nil {
			_, err = w.Write([]byte(rows))
			err = errors.Join(err, w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
