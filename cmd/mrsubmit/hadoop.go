package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/build"
	"github.com/quernmr/quern/cmd/internal/fsshell"
	"github.com/quernmr/quern/cmd/internal/hadooplog"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/mapreduce/streaming"
)

// hadoopPrograms are the names under which this executable answers as Hadoop's programs do; docs/hadoop.md says how they
// are installed, and what they answer.
func hadoopPrograms() []string { return []string{"hadoop", "hdfs", "mapred", "yarn"} }

// hadoopVersion is that of the Hadoop which has the same command lines, outputs and exit codes.
const hadoopVersion = "3.4.2"

// exitHadoopUsage is Hadoop's exit code for a wrong command line: -1.
const exitHadoopUsage = 255

// hadoop answers as one of Hadoop's programs.
func (t *tool) hadoop(ctx context.Context, program string, args []string) int {
	args, configured, err := launcherOptions(args)
	if err != nil {
		return t.hadoopExit(program, err)
	}
	if !configured {
		useInstalledConfiguration(startedAs(), t.getenv)
	}
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch word := program + " " + command; {
	case slices.Contains([]string{"", "-h", "-help", "--help", "help"}, command):
		fmt.Fprint(t.stdout, hadoopUsage)
		return exitDone
	case command == "version":
		_, err := fmt.Fprintf(t.stdout, "Hadoop %s\nThis is Quern %s, which answers in its place: docs/hadoop.md\n", hadoopVersion, build.Version())
		return t.hadoopExit(program, err)
	case word == "hadoop fs", word == "hadoop dfs", word == "hdfs dfs":
		return t.hadoopFS(ctx, word, args)
	case word == "hadoop jar", word == "yarn jar":
		return t.hadoopExit(word, t.hadoopJar(ctx, args))
	case word == "mapred streaming":
		return t.hadoopExit(word, t.hadoopStreaming(ctx, args))
	case word == "mapred job", word == "hadoop job":
		return t.hadoopExit(word, t.mapredJob(ctx, args))
	case word == "yarn application", word == "yarn app":
		return t.hadoopExit(word, t.yarnApplication(ctx, args))
	case word == "yarn node":
		return t.hadoopExit(word, t.yarnNode(ctx, args))
	case word == "hdfs getconf":
		return t.hadoopExit(word, t.getConf(args))
	case word == "yarn logs":
		return t.hadoopExit(word, t.yarnLogs(ctx, args))
	case instead(word) != "":
		return t.hadoopExit(program, fmt.Errorf("%s is not answered: use %s", command, instead(word)))
	default:
		return t.hadoopExit(program, fmt.Errorf("%s is not answered: Quern runs no Java class. It answers\n%s", strings.TrimSpace(command), hadoopCommands))
	}
}

// hadoopCommands lists what is answered.
const hadoopCommands = `  hadoop jar hadoop-streaming.jar, mapred streaming   run a job of Hadoop Streaming
  hadoop fs, hdfs dfs                                 work with files
  mapred job -list, -status, -kill, -counter, -history
  yarn application -list, -status, -kill; yarn logs -applicationId
  yarn node -list
  hdfs getconf -confKey, -namenodes, -nnRpcAddresses
  hadoop version
`

const hadoopUsage = "usage: hadoop COMMAND, and mapred, yarn and hdfs, answered by Quern:\n\n" + hadoopCommands + `
The page docs/hadoop.md lists what is answered, and what is refused.
`

// hadoopExit prints an error as Hadoop's launchers do, and returns the exit code.
func (t *tool) hadoopExit(program string, err error) int {
	var code exitCode
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &code):
		return int(code)
	case isOutputClosed(err):
		return exitBrokenPipe
	}
	fmt.Fprintf(t.stderr, "%s: %s\n", program, errorText(err))
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitHadoopUsage
	}
	return exitFailed
}

// startedAs returns the absolute path under which this program was started, which is a link; empty: it is not known.
func startedAs() string {
	path, err := exec.LookPath(os.Args[0])
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return ""
	}
	return path
}

// parseGeneric takes Hadoop's generic options, which come first.
func parseGeneric(args []string) (g *streaming.Generic, rest []string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("find the working directory: %w", err)
	}
	if g, rest, err = streaming.ParseGeneric(args, dir); errors.Is(err, streaming.ErrNoValue) {
		err = usagef("%v", err)
	}
	return g, rest, err
}

// configuration returns Hadoop's configuration with what the generic options set, and notes about what has no effect.
func configuration(g *streaming.Generic) (conf hdfs.Conf, notes []string, err error) {
	more, set := g.Given()
	if g.FS() != "" {
		set["fs.defaultFS"] = g.FS()
	}
	if conf, notes, err = hdfs.Overlaid(more, set); err != nil {
		return nil, nil, err
	}
	if conf["fs.defaultFS"] == "local" {
		conf["fs.defaultFS"] = "file:///"
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if part, _, _ := strings.Cut(name, "."); slices.Contains(ofFileSystems, part) && !hdfs.Reads(name) {
			notes = append(notes, fmt.Sprintf("property %s has no effect: Quern's file systems do not read it", name))
		}
	}
	return conf, notes, nil
}

// ofFileSystems begin the names of properties that configure Hadoop's file systems.
var ofFileSystems = []string{"dfs", "fs", "hadoop", "io", "ipc"}

// defaultFS returns the file system of paths without a scheme: that of -fs, of fs.defaultFS or of Hadoop's configuration.
func defaultFS(g *streaming.Generic) (string, error) {
	conf, _, err := configuration(g)
	if err != nil {
		return "", err
	}
	return cleanDefault(conf)
}

func cleanDefault(conf hdfs.Conf) (string, error) {
	clean, err := dfs.CleanDefault(conf.Value("fs.defaultFS"))
	if err != nil {
		return "", usagef("%v", err)
	}
	return clean, nil
}

// hadoopFS is hadoop fs.
func (t *tool) hadoopFS(ctx context.Context, program string, args []string) int {
	g, args, err := parseGeneric(args)
	s := fsshell.Shell{Program: program, Stdin: t.stdin, Stdout: t.stdout, Stderr: &client.VisibleWriter{To: t.stderr}, Location: time.Local}
	var conf hdfs.Conf
	var notes []string
	if err == nil {
		conf, notes, err = configuration(g)
	}
	if err == nil {
		s.Default, err = cleanDefault(conf)
	}
	if err != nil {
		return t.hadoopExit(program, err)
	}
	for _, note := range notes {
		fmt.Fprintln(t.stderr, "warning:", errorText(errors.New(note)))
	}
	s.Files = fsshell.FileSystems(func() (hdfs.Conf, error) { return conf, nil })
	code, err := s.Run(ctx, args)
	if err != nil {
		return t.hadoopExit(program, err)
	}
	return code
}

// useInstalledConfiguration sets HADOOP_CONF_DIR as Hadoop's launchers do: to etc/hadoop beside the directory of the
// program, if that exists and nothing else is set.
func useInstalledConfiguration(program string, getenv func(string) string) {
	if home := filepath.Dir(filepath.Dir(program)); program != "" && getenv("HADOOP_CONF_DIR") == "" && getenv("HADOOP_HOME") == "" {
		conf := filepath.Join(home, "etc", "hadoop")
		if _, err := os.Stat(filepath.Join(conf, "core-site.xml")); err == nil {
			os.Setenv("HADOOP_CONF_DIR", conf)
		}
	}
}

// hadoopHome returns the directory of Hadoop, in which tools look for logs; empty: there is none. A program in /usr/bin
// has none.
func hadoopHome(program string, getenv func(string) string) string {
	for _, name := range []string{"HADOOP_PREFIX", "HADOOP_HOME", "HADOOP_INSTALL"} {
		if home := getenv(name); home != "" {
			return home
		}
	}
	home := filepath.Dir(filepath.Dir(program))
	if program == "" || slices.Contains([]string{"/", "/usr", "/usr/local", "."}, home) {
		return ""
	}
	return home
}

func (t *tool) hadoopLog() *hadooplog.Log { return &hadooplog.Log{To: t.stderr, Now: time.Now} }
