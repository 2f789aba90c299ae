package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/mapreduce/streaming/streamtest"
)

// streamingCases has the cases of Hadoop Streaming.
const streamingCases = "mapreduce/streaming/testdata/cases"

// streaming runs Hadoop Streaming on its local runner.
type streaming struct {
	dir   string // for its files
	cases string // a part of the names of the cases to run
}

// recorded runs all cases. Of each one it records the exit code and the files of the output.
func (s streaming) recorded(ctx context.Context) (answers, error) {
	jars, err := minicluster.Classpath(ctx, "org.apache.hadoop:hadoop-mapreduce-client-core:", "org.apache.hadoop:hadoop-mapreduce-client-common:",
		"org.apache.hadoop:hadoop-mapreduce-client-jobclient:", "org.apache.hadoop:hadoop-streaming:", "org.apache.hadoop:hadoop-yarn-api:",
		"org.apache.hadoop:hadoop-yarn-common:", "org.apache.hadoop:hadoop-yarn-client:")
	if err != nil {
		return answers{}, err
	}
	names, err := filepath.Glob(streamingCases + "/*.txt")
	if err != nil {
		return answers{}, err
	}
	a := answers{version: hadoopVersion, records: make(map[string]string)}
	for _, name := range names {
		if !strings.Contains(filepath.Base(name), s.cases) {
			continue
		}
		if a.records[name], err = s.record(ctx, jars, name); err != nil {
			return a, fmt.Errorf("%s: %w", name, err)
		}
	}
	return a, nil
}

func (s streaming) record(ctx context.Context, jars, name string) (string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	c, err := streamtest.Parse(string(text))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, strings.TrimSuffix(filepath.Base(name), ".txt"))
	if err := errors.Join(os.Mkdir(dir, 0o777), c.Write(dir)); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "java", append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m", "-cp", jars,
		"org.apache.hadoop.streaming.HadoopStreaming", "-D", "mapreduce.framework.name=local", "-D", "fs.defaultFS=file:///",
		"-D", "hadoop.tmp.dir=" + filepath.Join(s.dir, "tmp")}, c.Args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case failed:
		c.Exit = exit.ExitCode()
	case err != nil:
		return "", err
	default:
		c.Exit = 0
	}
	if strings.Contains(string(out), "NoClassDefFoundError") || strings.Contains(string(out), "ClassNotFoundException: org.apache.hadoop") {
		return "", fmt.Errorf("a class is missing:\n%s", out)
	}
	if c.Out, err = c.Read(dir); err != nil {
		return "", err
	}
	if c.Exit != 0 {
		c.Out = nil // what is left of a failed job does not count
	}
	return c.String(), nil
}
