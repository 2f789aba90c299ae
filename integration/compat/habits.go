package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

//go:embed HadoopHabits.java
var hadoopHabits []byte

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
	hashComment = "# Keys by class, with their bytes, and the partition of 1000 by Hadoop's HashPartitioner.\n\n"
)

func (h habits) recorded(ctx context.Context) (a answers, err error) {
	const group = "org.apache.hadoop:hadoop-"
	jars, err := minicluster.Classpath(ctx, group+"mapreduce-client-core:", group+"mapreduce-client-common:", group+"mapreduce-client-jobclient:", group+"yarn-api:", group+"yarn-common:")
	if err != nil {
		return a, err
	}
	input, err := os.ReadFile(jobsInput)
	if err != nil {
		return a, err
	}
	dir := filepath.Join(h.dir, "habits")
	source := filepath.Join(dir, "HadoopHabits.java")
	err = errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(source, hadoopHabits, 0o666), os.WriteFile(filepath.Join(dir, "in"), input, 0o666),
		os.WriteFile(filepath.Join(dir, "log4j.properties"), []byte("log4j.rootLogger=OFF\n"), 0o666))
	if err != nil {
		return a, err
	}
	if out, err := exec.CommandContext(ctx, "javac", "-cp", jars, "-d", dir, source).CombinedOutput(); err != nil {
		return a, fmt.Errorf("compile HadoopHabits.java: %w\n%s", err, out)
	}
	// Quern makes a partition file, which Hadoop reads.
	sample := exec.CommandContext(ctx, "go", "run", "./integration/embedded/words", "-combine", "-ranges", "-input", dir+"/in", "-output", dir+"/quern",
		"-D", "mapreduce.job.reduces=3", "-D", "quern.totalorder.path="+dir+"/sampled.seq")
	if out, err := sample.CombinedOutput(); err != nil {
		return a, fmt.Errorf("sample: %w\n%s", err, out)
	}
	a = answers{version: "3.4.2", records: make(map[string]string)}
	for file, run := range map[string][]string{jobsRecord: {jobsComment, "jobs", dir}, hashRecord: {hashComment, "hashes"}} {
		var stderr strings.Builder
		cmd := exec.CommandContext(ctx, "java", append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", dir + ":" + jars, "HadoopHabits"}, run[1:]...)...)
		cmd.Stderr = &stderr
		printed, err := cmd.Output()
		if err != nil {
			return a, fmt.Errorf("run HadoopHabits %s: %w\n%s", run[1], err, stderr.String())
		}
		a.records[file] = run[0] + string(printed)
	}
	ranges, err := os.ReadFile(filepath.Join(dir, "ranges.seq"))
	a.records[rangesRecord] = string(ranges)
	return a, err
}
