package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	input, err := os.ReadFile(jobsInput)
	if err != nil {
		return a, err
	}
	dir := filepath.Join(h.dir, "habits")
	err = errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "in"), input, 0o666), os.WriteFile(filepath.Join(dir, "log4j.properties"), []byte(logging), 0o666))
	if err != nil {
		return a, err
	}
	java, err := compiled(ctx, dir, "HadoopHabits", hadoopHabits, jobArtifacts()...)
	if err != nil {
		return a, err
	}
	// Quern makes a partition file, which Hadoop reads.
	sample := exec.CommandContext(ctx, "go", "run", "./integration/embedded/words", "-combine", "-ranges", "-input", dir+"/in", "-output", dir+"/quern",
		"-D", "mapreduce.job.reduces=3", "-D", "quern.totalorder.path="+dir+"/sampled.seq")
	if out, err := sample.CombinedOutput(); err != nil {
		return a, fmt.Errorf("sample: %w\n%s", err, out)
	}
	a = answers{version: "3.4.2", records: make(map[string]string)}
	for file, run := range map[string][]string{jobsRecord: {jobsComment, "jobs", dir}, hashRecord: {hashComment, "hashes"}} {
		printed, err := java("", run[1:]...)
		if err != nil {
			return a, err
		}
		a.records[file] = run[0] + printed
	}
	ranges, err := os.ReadFile(filepath.Join(dir, "ranges.seq"))
	a.records[rangesRecord] = string(ranges)
	return a, err
}
