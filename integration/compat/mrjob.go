package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/archive"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/mrjob"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/tpch/peers"
)

// mrjobs runs the real mrjob with Quern as its hadoop; dir is for its files.
type mrjobs struct {
	dir             string
	python, program string // paths of Python with mrjob, and of Quern's hadoop
}

// mrjobTestdata has the recorded sessions, and the jobs.
const mrjobTestdata = "integration/mrjob/testdata/"

// mrjobSession is a run of mrjob.
type mrjobSession struct {
	name string
	job  string   // a file of mrjobTestdata; else arguments for Python
	args []string // IN is the input
	says []string // what its messages about a failure must have
}

func mrjobSessions() []mrjobSession {
	return []mrjobSession{
		{name: "example", args: []string{"-m", "mrjob.examples.mr_word_freq_count"}},
		{name: "archives", job: "archives.py", args: []string{"--archives", "words.tar.gz#packed", "--archives", "names.zip", "--dirs", "plain"}},
		{name: "three", job: "three.py", args: []string{"--stop", "stop.txt"}},
		{name: "fail", job: "fail.py", args: []string{"-D", "mapreduce.map.maxattempts=1"},
			says: []string{"Probable cause of failure:", "subprocess failed with code 1", "ValueError: bad line: violets.are.blue", "while reading input from", "Step 1 of 1 failed"}},
	}
}

const mrjobInput = "roses are red\nviolets.are.blue roses\n"

// writeMrjobFiles writes what the sessions read.
func writeMrjobFiles(dir string) error {
	files := map[string]string{"in": mrjobInput, "stop.txt": "are\n", "plain/below/list": "are is\n"}
	var all []error
	for name, list := range map[string]string{"words.tar.gz:en/list": "roses flowers\n", "names.zip:list": "red Rot\n"} {
		name, path, _ := strings.Cut(name, ":")
		packed, err := mrjob.Pack(name, map[string]string{path: list})
		files[name], all = string(packed), append(all, err)
	}
	for name, text := range files {
		name = filepath.Join(dir, name)
		all = append(all, os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666))
	}
	return errors.Join(all...)
}

// recorded runs the sessions and records the calls.
func (m mrjobs) recorded(ctx context.Context) (answers, error) {
	peer, err := peers.Mrjob(ctx)
	if err != nil {
		return answers{}, err
	}
	home := filepath.Join(m.dir, "quern")
	program := filepath.Join(home, "bin", "hadoop")
	if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./cmd/mrsubmit").CombinedOutput(); err != nil {
		return answers{}, fmt.Errorf("build: %w\n%s", err, out)
	}
	a := answers{version: version(peer), records: make(map[string]string)}
	m.python, m.program = peer.Program("python"), program
	local := make(map[string]*mrjob.Session)
	for _, s := range mrjobSessions() {
		if local[s.name], err = m.run(ctx, s, mrjobPlace{}); err != nil {
			return a, fmt.Errorf("%s: %w", s.name, err)
		}
		if a.records[mrjobTestdata+s.name+".json"], err = local[s.name].Text(); err != nil {
			return a, err
		}
	}
	a.differences, err = m.overHDFS(ctx, local)
	return a, err
}

// mrjobPlace is where sessions run; the zero value: embedded, over local files.
type mrjobPlace struct {
	name string   // of its directories
	conf string   // Hadoop's configuration with the HDFS of the files
	env  []string // of a cluster
}

// overHDFS runs the sessions in a real HDFS, embedded and on a cluster: the calls, outputs and counters must be those of local files.
func (m mrjobs) overHDFS(ctx context.Context, local map[string]*mrjob.Session) (differences []string, err error) {
	jars, err := minicluster.Fetch(ctx)
	if err != nil {
		return nil, err
	}
	cluster, err := minicluster.Start(ctx, minicluster.Config{Jars: jars, Dir: filepath.Join(m.dir, "mrjob-hdfs"), Racks: []string{"/a"}, Replication: 1})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	embedded := mrjobPlace{name: "-hdfs", conf: cluster.Conf()}
	if differences, err = m.at(ctx, embedded, local); err != nil {
		return differences, err
	}
	more, err := m.onTrackers(ctx, embedded, local)
	if differences = append(differences, more...); err != nil {
		return differences, err
	}
	return append(differences, m.relative(ctx, cluster.Conf())...), nil
}

// onTrackers runs the sessions on a cluster of a job tracker and two task trackers, with its staging directory in HDFS.
func (m mrjobs) onTrackers(ctx context.Context, over mrjobPlace, local map[string]*mrjob.Session) ([]string, error) {
	programs := filepath.Join(m.dir, "daemons")
	if err := errors.Join(os.MkdirAll(programs, 0o777), processes.Build(programs)); err != nil {
		return nil, err
	}
	cluster, err := processes.Start(ctx, processes.Config{Programs: programs, Dir: filepath.Join(m.dir, "mrjob-trackers"), JobTrackers: 1, TaskTrackers: 2,
		Env: []string{"HADOOP_CONF_DIR=" + over.conf, "HADOOP_USER_NAME=" + hdfsUser}, Staging: "hdfs:///staging"})
	if err != nil {
		return nil, err
	}
	defer cluster.Close()
	over.name, over.env = "-trackers", append(cluster.User(), "QUERN_JOBTRACKER="+cluster.Addrs())
	return m.at(ctx, over, local)
}

// at runs the sessions at a place, and compares them with those of local files.
func (m mrjobs) at(ctx context.Context, place mrjobPlace, local map[string]*mrjob.Session) (differences []string, err error) {
	for _, s := range mrjobSessions() {
		got, err := m.run(ctx, s, place)
		if err != nil {
			return differences, fmt.Errorf("%s%s: %w", s.name, place.name, err)
		}
		want := local[s.name]
		if got.Out != want.Out || got.Exit != want.Exit || len(got.Calls) != len(want.Calls) {
			differences = append(differences, fmt.Sprintf("%s%s: exit code %d and %d calls, and locally %d and %d: %q, %q", s.name, place.name, got.Exit, len(got.Calls), want.Exit, len(want.Calls), got.Out, want.Out))
			continue
		}
		for i := range got.Calls {
			if !reflect.DeepEqual(got.Calls[i].Counters, want.Calls[i].Counters) {
				differences = append(differences, fmt.Sprintf("%s%s: counters %v, and locally %v", s.name, place.name, got.Calls[i].Counters, want.Calls[i].Counters))
			}
		}
	}
	return differences, nil
}

// hdfsUser may make home directories in HDFS.
const hdfsUser = "hdfs"

// relative runs a job with relative paths, which are in the user's home directory in HDFS.
func (m mrjobs) relative(ctx context.Context, conf string) (differences []string) {
	in := filepath.Join(m.dir, "relative")
	if err := os.WriteFile(in, []byte("b\na\n"), 0o666); err != nil {
		return []string{err.Error()}
	}
	for _, step := range []struct{ args, out string }{
		{"fs -mkdir -p dir", ""},
		{"fs -put " + in + " dir/in", ""},
		{"jar hadoop-streaming.jar -input dir -output out -mapper cat -reducer cat", ""},
		{"fs -cat out/part-00000", "a\t\nb\t\n"},
		{"fs -test -f /user/" + os.Getenv("USER") + "/none", ""},
	} {
		cmd := exec.CommandContext(ctx, m.program, strings.Fields(step.args)...)
		cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+conf, "QUERN_JOBTRACKER=", "HADOOP_USER_NAME="+hdfsUser)
		var messages strings.Builder
		cmd.Stderr = &messages
		if out, err := cmd.Output(); string(out) != step.out || (err != nil) != strings.HasSuffix(step.args, "none") {
			differences = append(differences, fmt.Sprintf("hadoop %s: %v, %q, want %q: %s", step.args, err, out, step.out, messages.String()))
		}
	}
	return differences
}

// hadoopWrapper records each call: its arguments, exit code and output, and the file of a -put. The job's output is for mrjob
// alone, which gives it a terminal.
const hadoopWrapper = `#!/bin/sh
n=$(printf '%%03d' $(ls %[2]s | wc -l))
mkdir %[2]s/$n
printf '%%s\n' "$@" > %[2]s/$n/args
case "$2" in -put) cp "$3" %[2]s/$n/file;; esac
case "$1" in
jar) %[1]s "$@"; code=$?;;
*) %[1]s "$@" > %[2]s/$n/out; code=$?; cat %[2]s/$n/out;;
esac
echo $code > %[2]s/$n/exit
exit $code
`

// run runs a session.
func (m mrjobs) run(ctx context.Context, s mrjobSession, at mrjobPlace) (*mrjob.Session, error) {
	dir, scratch := filepath.Join(m.dir, s.name+at.name), []string{}
	if at.conf == "" {
		scratch = []string{"--hadoop-tmp-dir", "file://" + dir + "/scratch"}
	}
	calls, jar := filepath.Join(dir, "calls"), filepath.Join(dir, "hadoop-streaming.jar")
	err := errors.Join(os.MkdirAll(calls, 0o777), os.Mkdir(filepath.Join(dir, "tmp"), 0o777), os.Mkdir(filepath.Join(dir, "bin"), 0o777),
		os.WriteFile(filepath.Join(dir, "bin", "hadoop"), fmt.Appendf(nil, hadoopWrapper, m.program, calls), 0o777), os.WriteFile(jar, nil, 0o666),
		writeMrjobFiles(dir))
	args := s.args
	if s.job != "" {
		text, readErr := os.ReadFile(mrjobTestdata + s.job)
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, s.job), text, 0o666))
		args = append([]string{s.job}, args...)
	}
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, m.python, slices.Concat(args, scratch, []string{"--no-conf", "-r", "hadoop", "--hadoop-streaming-jar", jar, "in"})...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "TMPDIR="+filepath.Join(dir, "tmp"), "HADOOP_LOG_DIR="+filepath.Join(dir, "logs"),
		"HADOOP_CONF_DIR="+at.conf, "HADOOP_HOME=", "HADOOP_PREFIX=", "HADOOP_INSTALL=", "QUERN_JOBTRACKER=", "LC_ALL=C.UTF-8", "HADOOP_USER_NAME="+hdfsUser)
	cmd.Env = append(cmd.Env, at.env...)
	var messages strings.Builder
	cmd.Stderr = &messages
	out, err := cmd.Output()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		return nil, err
	}
	got := &mrjob.Session{Args: args, Files: make(map[string]string), Archives: make(map[string]map[string]string), Out: sortedLines(string(out)), Says: s.says}
	if failed {
		got.Exit = exit.ExitCode()
	}
	if (got.Exit != 0) != (s.says != nil) {
		return nil, fmt.Errorf("exit code %d: %s", got.Exit, messages.String())
	}
	for _, text := range s.says {
		if !strings.Contains(messages.String(), text) {
			return nil, fmt.Errorf("mrjob does not say %q: %s", text, messages.String())
		}
	}
	if err := readCalls(got, calls, strings.NewReplacer(jar, "JAR", dir, "DIR")); err != nil {
		return nil, err
	}
	return got, understood(got, messages.String())
}

func sortedLines(text string) string {
	all := slices.Sorted(strings.Lines(text))
	return strings.Join(all, "")
}

var (
	mrjobKey = regexp.MustCompile(`\w+\.\w+\.\d{8}\.\d{6}\.\d{6}`)
	idOfJob  = regexp.MustCompile(`(application|job)_\d+_\d{4}`)
)

// readCalls adds what the wrapper has recorded.
func readCalls(s *mrjob.Session, dir string, names *strings.Replacer) error {
	plain := func(text string) string {
		return idOfJob.ReplaceAllString(mrjobKey.ReplaceAllString(names.Replace(text), "KEY"), "${1}_ID")
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range all {
		file := func(name string) (string, error) {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name(), name))
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
			return string(text), err
		}
		args, argsErr := file("args")
		out, outErr := file("out")
		code, codeErr := file("exit")
		put, putErr := file("file")
		exit, err := strconv.Atoi(strings.TrimSpace(code))
		if err := errors.Join(argsErr, outErr, codeErr, putErr, err); err != nil {
			return err
		}
		c := mrjob.Call{Args: strings.Split(strings.TrimSuffix(plain(args), "\n"), "\n"), Exit: exit, Out: plain(out)}
		switch c.Args[0] + c.Args[min(1, len(c.Args)-1)] {
		case "fs-ls":
			c.Out = mrjob.Names(c.Out)
		case "versionversion":
			c.Out, _, _ = strings.Cut(c.Out, "\n")
		case "fs-put":
			switch name := filepath.Base(c.Args[2]); {
			case name == "mrjob.zip":
			case archive.Check(name) == nil:
				if s.Archives[name], err = mrjob.Unpack(name, put); err != nil {
					return err
				}
			default:
				s.Files[name] = plain(put)
			}
		}
		s.Calls = append(s.Calls, c)
	}
	return nil
}

// understood adds the counters that mrjob has printed to the calls of its jobs.
func understood(s *mrjob.Session, messages string) error {
	at := 0
	for i := range s.Calls {
		if s.Calls[i].Args[0] != "jar" || s.Exit != 0 {
			continue
		}
		_, rest, found := strings.Cut(messages[at:], "\nCounters: ")
		if !found {
			return fmt.Errorf("mrjob has found no counters of job %d: %s", i, messages)
		}
		at = len(messages) - len(rest)
		block := "Counters: "
		for line := range strings.Lines(rest) {
			if block != "Counters: " && !strings.HasPrefix(line, "\t") {
				break
			}
			block += line
		}
		s.Calls[i].Counters = mrjob.Counters(strings.TrimSuffix(block, "\n"))
	}
	return nil
}
