// Package mrjob measures a small job of mrjob with Quern as its hadoop, and takes its time apart: most of it is Python's.
package mrjob

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/tpch/peers"
)

type bench struct {
	*testbed.Bench
	python string
	env    []string
}

// Section declares the parts.
func Section() testbed.Section {
	b := &bench{}
	columns := []string{"what runs", "time", "processor time", "target"}
	return testbed.Section{
		Name: "mrjob", About: "a small job of mrjob -r hadoop, and what its time is spent on; needs Python, and Java and Maven for HDFS",
		Runs: 9, Size: "1K", Programs: []string{"cmd/mrsubmit"}, Open: b.prepare,
		Parts: []testbed.Part{
			{Name: "local files", Columns: columns, Measure: b.local},
			{Name: "over HDFS", Columns: columns, Measure: b.overHDFS},
		},
	}
}

// zipped makes the archive of the library that mrjob uploads, and copies the job. A Python in a version manager's wrapper
// takes longer than the job, so PATH begins with the real one.
const zipped = `import mrjob, mrjob.examples.mr_word_freq_count as job, os, shutil
shutil.make_archive("mrjob", "zip", os.path.dirname(os.path.dirname(mrjob.__file__)), "mrjob")
shutil.copy(job.__file__, "job.py")`

// prepare makes a link to Quern as hadoop, the input, and what the job's commands need without hadoop.
func (b *bench) prepare(base *testbed.Bench) error {
	b.Bench = base
	peer, err := peers.Mrjob(b.Ctx)
	if err != nil {
		return err
	}
	b.python = peer.Program("python")
	link := b.Path("home/bin/hadoop")
	err = errors.Join(os.MkdirAll(filepath.Dir(link), 0o777), os.RemoveAll(link), os.Symlink(b.Program("mrsubmit"), link),
		os.WriteFile(b.Path("hadoop-streaming.jar"), nil, 0o666), input.Text(b.Path("text"), b.Bytes))
	if err != nil {
		return err
	}
	b.env = append(os.Environ(), "PATH="+filepath.Dir(link)+":"+filepath.Dir(b.python)+":"+os.Getenv("PATH"), "QUERN_JOBTRACKER=", "HADOOP_CONF_DIR=",
		"HADOOP_HOME=", "HADOOP_PREFIX=", "HADOOP_INSTALL=", "HADOOP_LOG_DIR="+b.Path("logs"))
	_, err = testbed.Used(b.command(b.python, "-c", zipped))
	return err
}

func (b *bench) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.Ctx, program, args...)
	cmd.Dir, cmd.Env = b.Dir, b.env
	return cmd
}

// job is mrjob's count of words.
func (b *bench) job(options ...string) []string {
	return append([]string{b.python, "-m", "mrjob.examples.mr_word_freq_count", "--no-conf", "-r", "hadoop", "--hadoop-streaming-jar", b.Path("hadoop-streaming.jar"), b.Path("text")}, options...)
}

// Parts of the job without mrjob, as scripts of sh. FS is replaced by the URL of a directory.
const (
	fileCalls = `set -e
hadoop version
hadoop fs -mkdir -p FS/files/wd
for name in 1 2 3 4 5; do hadoop fs -put text FS/files/wd/$name; done
hadoop fs -mkdir -p FS/files/
hadoop fs -ls -R FS/files
hadoop fs -cat FS/files/wd/1
hadoop fs -rm -R -f -skipTrash FS`
	plainJob = `rm -rf out; hadoop jar hadoop-streaming.jar -input text -output out -mapper cat -combiner cat -reducer cat`
	commands = `set -e; export PYTHONPATH=mrjob.zip
python3 job.py --step-num=0 --mapper < text > mapped
python3 job.py --step-num=0 --combiner < mapped > combined
python3 job.py --step-num=0 --reducer < combined`
)

// row is a command to measure.
type row struct {
	name, target string
	args         []string
}

func (b *bench) local() error {
	url := "file://" + b.Path("scratch")
	return b.measure([]row{
		{"the whole job", "≤ 1.5 s", b.job("--hadoop-tmp-dir", url)},
		{"with `--no-bootstrap-mrjob`", "–", b.job("--hadoop-tmp-dir", url, "--no-bootstrap-mrjob")},
		{"its three commands in Python, without Quern", "–", []string{"sh", "-c", commands}},
		{"its 11 calls of `hadoop` for files", "–", []string{"sh", "-c", strings.ReplaceAll(fileCalls, "FS", url)}},
		{"a job with `cat` as the three commands", "–", []string{"sh", "-c", plainJob}},
	})
}

func (b *bench) overHDFS() error {
	const block = 1 << 20
	h, err := b.HDFS(block, false, nil)
	if err != nil {
		return err
	}
	local := b.env
	defer func() {
		b.env = local
		h.Close()
	}()
	b.env = append(local[:len(local):len(local)], "HADOOP_CONF_DIR="+h.Conf(), "HADOOP_USER_NAME=hdfs")
	return b.measure([]row{
		{"the whole job", "–", b.job()},
		{"its 11 calls of `hadoop` for files", "–", []string{"sh", "-c", strings.ReplaceAll(fileCalls, "FS", "hdfs:///tmp/scratch")}},
	})
}

// measure alternates commands.
func (b *bench) measure(rows []row) error {
	var things []func() (testbed.Usage, error)
	for _, r := range rows {
		things = append(things, func() (testbed.Usage, error) { return testbed.Used(b.command(r.args[0], r.args[1:]...)) })
	}
	used, err := testbed.Alternate(1, b.Runs, things...)
	if err != nil {
		return err
	}
	for i, r := range rows {
		var elapsed, processor []time.Duration
		for _, u := range used[i] {
			elapsed, processor = append(elapsed, u.Elapsed), append(processor, u.Processor)
		}
		testbed.Row(r.name, testbed.Seconds(testbed.Median(elapsed)), testbed.Seconds(testbed.Median(processor)), r.target)
	}
	return nil
}
