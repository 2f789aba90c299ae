package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

//go:embed Recorder.java
var recorder []byte

// hadoop runs Hadoop's own classes with Recorder.java; dir is for its files.
type hadoop struct{ dir string }

// recorded returns the run of a check with answers of Recorder.java that are recorded in a file.
func (h hadoop) recorded(what, file string) func(context.Context) (answers, error) {
	return func(ctx context.Context) (answers, error) {
		version, err := h.ask(ctx, "version", "")
		if err != nil {
			return answers{}, err
		}
		now, err := h.ask(ctx, what, file)
		return answers{version: strings.TrimSpace(version), records: map[string]string{file: now}}, err
	}
}

// ask returns the output of Recorder.java. Its input is the recorded file, if that exists.
func (h hadoop) ask(ctx context.Context, what, file string) (string, error) {
	jars, err := minicluster.Classpath(ctx, "org.apache.hadoop:hadoop-mapreduce-client-core:")
	if err != nil {
		return "", err
	}
	source := filepath.Join(h.dir, "Recorder.java")
	if err := os.WriteFile(source, recorder, 0o666); err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Djava.io.tmpdir="+h.dir, "-cp", jars, source, what)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8") // names of files are UTF-8
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if file != "" {
		old, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		cmd.Stdin = bytes.NewReader(old)
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run Recorder.java %s: %w\n%s", what, err, stderr.Bytes())
	}
	return stdout.String(), nil
}
