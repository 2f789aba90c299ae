package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

//go:embed Shell.java
var shellDriver []byte

// shell runs Hadoop's file system shell over tables of commands; dir is for its files.
type shell struct{ dir string }

// Tables with Hadoop's answers.
const (
	localCommands = "cmd/internal/fsshell/testdata/commands.txt"
	hdfsCommands  = "integration/hdfs/testdata/shell.txt"
)

func (s shell) recorded(ctx context.Context) (a answers, err error) {
	jars, err := minicluster.Fetch(ctx)
	if err != nil {
		return a, err
	}
	path, err := minicluster.Classpath(ctx, "org.lz4:lz4-java:1.8.0", "com.github.luben:zstd-jni:1.5.5-5")
	if err != nil {
		return a, err
	}
	a = answers{version: "3.4.2", records: make(map[string]string)}
	if a.records[localCommands], err = s.run(ctx, "local", localCommands, path, ""); err != nil {
		return a, err
	}
	cluster, err := minicluster.Start(ctx, minicluster.Config{Jars: jars, Dir: filepath.Join(s.dir, "shell-hdfs"), Racks: []string{"/a", "/b"}, Replication: 2})
	if err != nil {
		return a, err
	}
	defer cluster.Close()
	a.records[hdfsCommands], err = s.run(ctx, "hdfs", hdfsCommands, path, cluster.URL())
	return a, err
}

// run runs the commands of a table, and returns it with Hadoop's answers.
func (s shell) run(ctx context.Context, name, file, path, defaultFS string) (string, error) {
	table, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	repository, err := filepath.Abs(".")
	if err != nil {
		return "", err
	}
	work, source := filepath.Join(s.dir, "shell-"+name+"-files"), filepath.Join(s.dir, "Shell.java")
	if err := errors.Join(os.Mkdir(work, 0o777), os.WriteFile(source, shellDriver, 0o666)); err != nil {
		return "", err
	}
	defer syscall.Umask(syscall.Umask(0o022)) // the table has the modes of files
	args := []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Duser.timezone=UTC", "-cp", path, source, repository}
	env := append(os.Environ(), "LC_ALL=C.UTF-8") // names of files are UTF-8
	if defaultFS != "" {
		args, env = append(args, defaultFS), append(env, "HADOOP_USER_NAME="+minicluster.Superuser)
	}
	cmd := exec.CommandContext(ctx, "java", args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = work, bytes.NewReader(table), &stdout, &stderr
	cmd.Env = env
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run Shell.java: %w\n%s", err, stderr.Bytes())
	}
	return stdout.String(), nil
}
