package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

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
	path, err := compile(ctx, s.dir, "Shell", "org.lz4:lz4-java:1.8.0", "com.github.luben:zstd-jni:1.5.5-5")
	if err != nil {
		return a, err
	}
	a = answers{version: hadoopVersion, records: make(map[string]string)}
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
	work := filepath.Join(s.dir, "shell-"+name+"-files")
	if err := os.Mkdir(work, 0o777); err != nil {
		return "", err
	}
	defer syscall.Umask(syscall.Umask(0o022)) // the table has the modes of files
	args := []string{"-Duser.timezone=UTC", "Shell", repository}
	if defaultFS != "" {
		args = append(args, defaultFS)
	}
	cmd := java(ctx, work, path, args...)
	if defaultFS != "" {
		cmd.Env = append(cmd.Env, "HADOOP_USER_NAME="+minicluster.Superuser)
	}
	return printed(cmd, string(table))
}
