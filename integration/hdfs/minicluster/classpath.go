package minicluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/integration/cache"
)

// Classpath returns HDFS's jars and those of artifacts, without their dependencies. An artifact that ends in a
// colon has the version of HDFS.
func Classpath(ctx context.Context, artifacts ...string) (string, error) {
	jars, err := Fetch(ctx)
	if err != nil {
		return "", err
	}
	common, err := filepath.Glob(filepath.Join(jars.Dir(), "jars", "hadoop-common-*.jar"))
	if err != nil {
		return "", err
	}
	if len(common) != 1 {
		return "", fmt.Errorf("%s has %d jars of hadoop-common, want 1: remove the directory", jars.Dir(), len(common))
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(common[0]), "hadoop-common-"), ".jar")
	path := filepath.Join(jars.Dir(), "jars", "*")
	for _, artifact := range artifacts {
		if strings.HasSuffix(artifact, ":") {
			artifact += version
		}
		dir, err := cache.Dir("maven", artifact, func(dir string) error {
			cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-ntp", "dependency:copy", "-Dartifact="+artifact, "-DoutputDirectory="+dir)
			cmd.Dir = dir // without a pom.xml
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s: %w\n%s", ErrUnavailable, strings.Join(cmd.Args, " "), err, out)
			}
			return nil
		})
		if err != nil {
			return "", err
		}
		path += ":" + filepath.Join(dir, "*")
	}
	return path, nil
}

// LocalRunner returns the artifacts that Hadoop's local runner needs beside HDFS's jars, and more of Hadoop's by the ends of
// their names.
func LocalRunner(more ...string) []string {
	names := append([]string{"mapreduce-client-core", "mapreduce-client-common", "mapreduce-client-jobclient", "yarn-api", "yarn-common"}, more...)
	for i, name := range names {
		names[i] = "org.apache.hadoop:hadoop-" + name + ":"
	}
	return names
}
