package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// habits records what Hadoop's jobs and partitioners do: counters, names and permissions of files, partitions, also
// with a partition file of Quern.
type habits struct{ dir string }

const (
	jobsRecord   = "integration/embedded/testdata/hadoop.txt"
	jobsInput    = "integration/embedded/testdata/in"
	rangesRecord = "integration/embedded/testdata/ranges.seq"
	hashRecord   = "mapreduce/testdata/partitions.txt"
	jobsComment  = "# Hadoop's word counts of the file in, run by its local runner: whether they combine, properties, counters and files.\n" +
		"# SPLIT_RAW_BYTES is without the paths of splits. Counters of times, memory and file systems are left out.\n\n"
	hdfsRecord  = "integration/hdfs/testdata/jobs.txt"
	hdfsComment = "# Hadoop's word counts of two files in HDFS, run by its local runner: whether they combine, properties, bytes that\n" +
		"# they read and write, directories and files with permissions, sizes, replication and block sizes.\n\n"
	hashComment = "# Keys by class, with their bytes, and the partition of 1000 by Hadoop's HashPartitioner.\n\n"
)

func (h habits) recorded(ctx context.Context) (a answers, err error) {
	dir := filepath.Join(h.dir, "habits")
	if err := jobsDir(dir); err != nil {
		return a, err
	}
	java, err := compiled(ctx, dir, "HadoopHabits", minicluster.LocalRunner()...)
	if err != nil {
		return a, err
	}
	// Quern makes a partition file, which Hadoop reads.
	sample := exec.CommandContext(ctx, "go", "run", "./integration/embedded/words", "-combine", "-ranges", "-input", dir+"/in", "-output", dir+"/quern",
		"-D", "mapreduce.job.reduces=3", "-D", "quern.totalorder.path="+dir+"/sampled.seq")
	if out, err := sample.CombinedOutput(); err != nil {
		return a, fmt.Errorf("sample: %w\n%s", err, out)
	}
	a = answers{version: hadoopVersion, records: make(map[string]string)}
	for file, run := range map[string][]string{jobsRecord: {jobsComment, "jobs", dir}, hashRecord: {hashComment, "hashes"}} {
		printed, err := java("", run[1:]...)
		if err != nil {
			return a, err
		}
		a.records[file] = run[0] + printed
	}
	ranges, err := os.ReadFile(filepath.Join(dir, "ranges.seq"))
	if err != nil {
		return a, err
	}
	a.records[rangesRecord] = string(ranges)
	overHDFS, err := h.overHDFS(ctx, dir, java)
	a.records[hdfsRecord] = hdfsComment + overHDFS
	return a, err
}

// jobsDir makes a directory with the input of jobs.
func jobsDir(dir string) error {
	input, err := os.ReadFile(jobsInput)
	return errors.Join(err, os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "in"), input, 0o666))
}

// overHDFS runs jobs over a cluster like that of the tests in integration/hdfs.
func (h habits) overHDFS(ctx context.Context, dir string, java func(string, ...string) (string, error)) (string, error) {
	jars, err := minicluster.Fetch(ctx)
	if err != nil {
		return "", err
	}
	cluster, err := minicluster.Start(ctx, minicluster.Config{Jars: jars, Dir: filepath.Join(h.dir, "habits-hdfs"), Racks: []string{"/a", "/a", "/b", "/b"}, Replication: 2, BlockSize: 1 << 20})
	if err != nil {
		return "", err
	}
	defer cluster.Close()
	site, err := os.ReadFile(filepath.Join(cluster.Conf(), "hdfs-site.xml"))
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "hdfs-site.xml"), site, 0o666); err != nil { // the directory is on the driver's class path
		return "", err
	}
	return java("", "hdfs", dir, cluster.URL(), minicluster.Superuser)
}
