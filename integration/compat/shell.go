package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

//go:embed Shell.java
var shellDriver []byte

// shell runs Hadoop's file system shell over files in a directory below dir.
type shell struct{ dir string }

// commandsFile is the table of commands with Hadoop's answers.
const commandsFile = "cmd/internal/fsshell/testdata/commands.txt"

func (s shell) recorded(ctx context.Context) (answers, error) {
	jars, err := minicluster.Classpath(ctx, "org.lz4:lz4-java:1.8.0")
	if err != nil {
		return answers{}, err
	}
	table, err := os.ReadFile(commandsFile)
	if err != nil {
		return answers{}, err
	}
	repository, err := filepath.Abs(".")
	if err != nil {
		return answers{}, err
	}
	work, source := filepath.Join(s.dir, "shell"), filepath.Join(s.dir, "Shell.java")
	if err := os.Mkdir(work, 0o777); err != nil {
		return answers{}, err
	}
	if err := os.WriteFile(source, shellDriver, 0o666); err != nil {
		return answers{}, err
	}
	defer syscall.Umask(syscall.Umask(0o022)) // the table has the modes of files
	cmd := exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Duser.timezone=UTC", "-cp", jars, source, repository)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = work, bytes.NewReader(table), &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8") // names of files are UTF-8
	if err := cmd.Run(); err != nil {
		return answers{}, fmt.Errorf("run Shell.java: %w\n%s", err, stderr.Bytes())
	}
	return answers{version: "3.4.2", records: map[string]string{commandsFile: stdout.String()}}, nil
}
