package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// hadoopVersion is the version in minicluster's pom.xml.
const hadoopVersion = "3.4.2"

// sources has the Java classes.
const sources = "integration/compat"

// compiled returns a function that runs a Java class of this directory with an input and arguments, in dir.
func compiled(ctx context.Context, dir, class string, artifacts ...string) (func(stdin string, args ...string) (string, error), error) {
	path, err := compile(ctx, dir, class, artifacts...)
	return func(stdin string, args ...string) (string, error) {
		// Parquet writes sets of enums, which are in the order of hash codes: 2 stands for equal ones.
		return printed(java(ctx, dir, path, append([]string{"-XX:+UnlockExperimentalVMOptions", "-XX:hashCode=2", class}, args...)...), stdin)
	}, err
}

// compile compiles a Java class, and those of this directory that it names, into dir. It returns the class path: dir, where
// Hadoop's log is off, and the jars.
func compile(ctx context.Context, dir, class string, artifacts ...string) (string, error) {
	jars, err := minicluster.Classpath(ctx, artifacts...)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "log4j.properties"), []byte("log4j.rootLogger=OFF\n"), 0o666); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "javac", "-encoding", "UTF-8", "-cp", jars, "-sourcepath", sources, "-d", dir, filepath.Join(sources, class+".java")).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile %s.java: %w\n%s", class, err, out)
	}
	return dir + ":" + jars, nil
}

// java returns the command that runs Java in dir. The arguments are more options, the class, and the class's arguments.
func java(ctx context.Context, dir, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "java", append([]string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m", "-cp", path}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8") // names of files are UTF-8
	return cmd
}

// printed runs a command with an input, and returns what it prints.
func printed(cmd *exec.Cmd, stdin string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return stdout.String(), nil
}
