package hdfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/mrjob"
	"github.com/quernmr/quern/integration/trial"
)

// Scripts of the jobs. A mapper says that it has begun, then waits until the file that is named as its input is there.
const (
	gatedMapper = `file=${mapreduce_map_input_file##*/}
: > "$traces/$mapreduce_task_attempt_id"
while [ ! -e "$traces/$file" ]; do sleep 0.05; done
awk -v file="$file" -v list=names/list '
	BEGIN { while ((getline < list) > 0) name[$1] = $2 }
	{ print "reporter:counter:words,read," NF > "/dev/stderr"; for (i = 1; i <= NF; i++) print name[$i] "\t1"; print file "\t1" }'
`
	addingReducer  = `awk -F '\t' '$1 != k { if (NR > 1) print k "\t" n; k = $1; n = 0 } { n += $2 } END { if (NR) print k "\t" n }'`
	failingCommand = "cat > /dev/null\necho 'ValueError: out of order' >&2\nexit 3\n"
)

// scripted is a platform on which scripts call hadoop.
type scripted struct {
	*platform
	top string // without an authority, as mrjob names it
}

// newScripted starts two task trackers, and puts inputs and side files into HDFS.
func newScripted(t *testing.T) *scripted {
	t.Helper()
	c := cluster(t)
	p := newPlatform(t, c)
	p = p.withEnv("HADOOP_LOG_DIR=" + filepath.Join(p.dir, "logs"))
	s := &scripted{platform: p, top: "hdfs://" + strings.TrimPrefix(p.top, p.hdfs.URL())}
	for _, name := range []string{"hadoop", "mapred", "yarn"} {
		if err := os.Symlink("mrsubmit", filepath.Join(programs(t), name)); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	packed, err := mrjob.Pack("names.zip", map[string]string{"list": "a Ann\nb Bob\n"})
	if err != nil {
		t.Fatal(err)
	}
	p.start(daemonShape{traces: true, jobTrackers: 1, nodes: c.DataNodes[:2], slots: 2, staging: dfs.Join(p.top, "staging"), flags: []string{"-lease", "2s"}})
	s.command("hadoop", "fs", "-mkdir", "-p", s.top+"/files").Succeed()
	for name, text := range map[string]string{"map.sh": gatedMapper, "add.sh": addingReducer, "fail.sh": failingCommand, "names.zip": string(packed)} {
		local := filepath.Join(p.dir, name)
		if err := os.WriteFile(local, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		s.command("hadoop", "fs", "-put", local, s.top+"/files/"+name).Succeed()
	}
	for _, in := range []string{"1", "2", "3", "4"} {
		p.put("in/"+in, []byte("a b\nb\n"))
	}
	return s
}

// job begins a job with gated mappers; options come first.
func (s *scripted) job(out, mapper string, options ...string) *trial.Run {
	s.t.Helper()
	if err := errors.Join(os.RemoveAll(filepath.Join(s.dir, "traces")), os.Mkdir(filepath.Join(s.dir, "traces"), 0o777)); err != nil {
		s.t.Fatal(err)
	}
	files := s.top + "/files/"
	return s.command("hadoop", slices.Concat([]string{"jar", "hadoop-streaming.jar", "-files", files + "map.sh#m.sh," + files + "add.sh," + files + "fail.sh", "-archives", files + "names.zip#names"},
		options, []string{"-D", "mapreduce.job.reduces=2", "-cmdenv", "traces=" + filepath.Join(s.dir, "traces"),
			"-input", s.top + "/in", "-output", s.top + "/" + out, "-mapper", mapper, "-combiner", "sh add.sh", "-reducer", "sh add.sh"})...)
}

// begun waits until n mappers of a job have begun, and returns the job's and the application's id.
func (s *scripted) begun(run *trial.Run, n int) (job, application string) {
	s.t.Helper()
	run.Await(fmt.Sprint(n, " mappers"), func() bool {
		traces, _ := filepath.Glob(filepath.Join(s.dir, "traces", "attempt_*"))
		return len(traces) >= n
	})
	return s.ids(run)
}

var submittedApplication = regexp.MustCompile(`Submitted application (application(_\d+_\d{4}))\n`)

func (s *scripted) ids(run *trial.Run) (job, application string) {
	s.t.Helper()
	m := submittedApplication.FindStringSubmatch(run.Stderr.String())
	if m == nil {
		s.t.Fatalf("no application in %s", run.Stderr.String())
	}
	return "job" + m[2], m[1]
}

// open lets the mappers of inputs go on.
func (s *scripted) open(inputs ...string) {
	s.t.Helper()
	for _, in := range inputs {
		if err := os.WriteFile(filepath.Join(s.dir, "traces", in), nil, 0o666); err != nil {
			s.t.Fatal(err)
		}
	}
}

// says runs a command of Hadoop, which must print all texts.
func (s *scripted) says(command string, wants ...string) string {
	s.t.Helper()
	words := strings.Fields(command)
	printed := s.command(words[0], words[1:]...).Succeed()
	if !trial.ContainsAll(printed, wants) {
		s.t.Errorf("%s: want %q in\n%s", command, wants, printed)
	}
	return printed
}

// TestStreamingLosesTracker: a task tracker is killed while it has output of ended mappers, and runs others. The output is
// right, and each counter, also of the commands themselves, counts every record once. Meanwhile mapred and yarn see the job.
func TestStreamingLosesTracker(t *testing.T) {
	s := newScripted(t)
	run := s.job("out", "sh m.sh", "-D", "mapreduce.job.name=lost", "-D", "mapreduce.map.speculative=false")
	job, application := s.begun(run, 4)
	s.says("mapred job -list", "Total jobs:1\n", job, "lost", "RUNNING")
	s.says("yarn application -list", application, "lost", "MAPREDUCE", "RUNNING")
	s.open("1", "2")
	run.Await("two maps", func() bool { return s.lastJob().Maps.Done >= 2 })
	s.says("mapred job -status "+job, "Number of maps: 4\nNumber of reduces: 2\n", "Job state: RUNNING\n")
	if err := s.daemons.TaskTrackers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	s.open("3", "4")
	run.Succeed()

	got := trial.SortLines(trial.JoinParts(trial.ReadParts(t, s.fs, dfs.Join(s.platform.top, "out"))))
	trial.CheckEqual(t, "output", got, []byte("1\t2\n2\t2\n3\t2\n4\t2\nAnn\t4\nBob\t8\n"))
	s.counted(run, job)
	s.fails(t)
	s.killed(t)
}

// counted checks what mrjob reads of a job's end, and the counters that mapred prints.
func (s *scripted) counted(run *trial.Run, job string) {
	s.t.Helper()
	messages := mrjob.Messages(run.Stderr.String())
	if want := "Output directory: " + s.top + "/out"; !slices.Contains(messages, want) {
		s.t.Errorf("no %q in %q", want, messages)
	}
	at := slices.IndexFunc(messages, func(m string) bool { return mrjob.Counters(m) != nil })
	if at < 0 {
		s.t.Fatalf("no counters in %q", messages)
	}
	counters, want := mrjob.Counters(messages[at]), map[string]int64{"Map input records": 8, "Map output records": 20, "Combine input records": 20, "Combine output records": 12,
		"Reduce input records": 12, "Reduce output records": 6}
	for name, n := range want {
		if got := counters["Map-Reduce Framework"][name]; got != n {
			s.t.Errorf("%s=%d, want %d", name, got, n)
		}
	}
	if n := counters["words"]["read"]; n != 12 {
		s.t.Errorf("read=%d, want 12", n)
	}
	for names, want := range map[string]string{"words read": "12\n", "org.apache.hadoop.mapreduce.TaskCounter MAP_OUTPUT_RECORDS": "20\n"} {
		if got := s.says("mapred job -counter " + job + " " + names); got != want {
			s.t.Errorf("counter %s: %q, want %q", names, got, want)
		}
	}
}

// fails checks that the lines of a failed command are found: in the messages, in the saved logs, and on the task trackers.
func (s *scripted) fails(t *testing.T) {
	t.Helper()
	run := s.job("none", "sh fail.sh", "-D", "mapreduce.map.maxattempts=1")
	run.Fail(1, `subprocess failed with code 3`, "ValueError: out of order", "Job not successful!\nStreaming Command Failed!\n")
	_, application := s.ids(run)
	failed := slices.IndexFunc(mrjob.Messages(run.Stderr.String()), func(m string) bool {
		return strings.HasPrefix(m, "Task Id : attempt_") && strings.Contains(m, ", Status : FAILED\n")
	})
	saved, err := filepath.Glob(filepath.Join(s.dir, "logs/userlogs", application, "attempt_*/stderr"))
	if failed < 0 || err != nil || len(saved) == 0 {
		t.Fatalf("no failed attempt, or no saved log: %q, %v: %s", saved, err, run.Stderr.String())
	}
	if text, err := os.ReadFile(saved[0]); err != nil || !bytes.Contains(text, []byte("ValueError: out of order\n")) {
		t.Errorf("saved log: %q, %v", text, err)
	}
	logs := s.command("yarn", "logs", "-applicationId", application, "-log_files", "stderr")
	logs.Exit() // 1 if another attempt was killed before it had logs
	if !trial.ContainsAll(logs.Stdout.String(), []string{"LogType:stderr\n", "ValueError: out of order\n"}) {
		t.Errorf("yarn logs: %s%s", logs.Stdout.String(), logs.Stderr.String())
	}
	s.checkNoOutput(dfs.Join(s.platform.top, "none"))
}

// killed checks that mapred and yarn kill running jobs.
func (s *scripted) killed(t *testing.T) {
	t.Helper()
	for _, program := range []string{"mapred", "yarn"} {
		run := s.job("none", "sh m.sh")
		job, application := s.begun(run, 1)
		if program == "mapred" {
			s.says("mapred job -kill "+job, "Killed job "+job+"\n")
		} else {
			s.says("yarn application -kill "+application, "Killing application "+application+"\n")
		}
		run.Fail(1, "failed with state KILLED due to: killed by ", "Job not successful!\n")
		s.says("yarn application -list -appStates KILLED", application)
		s.says("yarn application -kill "+application, "has already finished")
		s.open("1", "2", "3", "4")
	}
	s.checkNoOutput(dfs.Join(s.platform.top, "none"))
}

// keepingCommand puts a file of its own beside the task's output, by Hadoop's command line. Partition 1 fails the first time.
const keepingCommand = `cat > /dev/null
cat d/data/list d/data/.hidden
n=$mapreduce_task_partition
if mkdir "$traces/$mapreduce_task_ismap-$n" && [ "$n" = 1 ]; then
	echo lost | "$hadoop" fs -put - "$mapreduce_task_output_dir/lost-$n" && exit 3
fi
echo "$n" | "$hadoop" fs -put - "$mapreduce_task_output_dir/kept-$n"
`

// TestStreamingKeepsFiles: commands put files into their attempts' output directories in HDFS, and read a directory of
// -files: one of HDFS, then a local one, which the client uploads. The files of attempts that succeed become part of the
// output, and those of others do not.
func TestStreamingKeepsFiles(t *testing.T) {
	s := newScripted(t)
	local := filepath.Join(s.dir, "tree")
	for name, text := range map[string]string{"bin/keep.sh": keepingCommand, "data/list": "Ann\nBob\n", "data/.hidden": "Cid\n"} {
		name = filepath.Join(local, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(text), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	s.command("hadoop", "fs", "-put", local, s.top+"/files/tree").Succeed()
	traces := filepath.Join(s.dir, "traces")
	if err := os.MkdirAll(traces, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		out, tree string
		tasks     int
		commands  []string
	}{
		{"maps", s.top + "/files/tree", 4, []string{"-mapper", "sh d/bin/keep.sh", "-reducer", "NONE"}},
		{"reduces", local, 2, []string{"-numReduceTasks", "2", "-mapper", "cat", "-reducer", "sh d/bin/keep.sh"}},
	} {
		run := s.command("hadoop", append([]string{"jar", "hadoop-streaming.jar", "-files", c.tree + "#d", "-D", "mapreduce.map.speculative=false", "-D", "mapreduce.reduce.speculative=false",
			"-cmdenv", "traces=" + traces, "-cmdenv", "hadoop=" + filepath.Join(programs(t), "hadoop"),
			"-input", s.top + "/in", "-output", s.top + "/" + c.out}, c.commands...)...)
		run.Succeed()
		if !strings.Contains(run.Stderr.String(), "subprocess failed with code 3") {
			t.Errorf("%s: no attempt has failed: %s", c.out, run.Stderr.String())
		}
		want := []string{"_SUCCESS"}
		for n := range c.tasks {
			want = append(want, fmt.Sprintf("kept-%d", n), fmt.Sprintf("part-%05d", n))
		}
		slices.Sort(want)
		var got []string
		infos, err := s.fs.List(dfs.Join(s.platform.top, c.out))
		for _, info := range infos {
			got = append(got, dfs.Base(info.Name))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q; %v", c.out, got, want, err)
		}
		text := s.command("hadoop", "fs", "-cat", s.top+"/"+c.out+"/[pk]*-*1").Succeed()
		if want := "1\nAnn\t\nBob\t\nCid\t\n"; text != want {
			t.Errorf("%s: files of partition 1: %q, want %q", c.out, text, want)
		}
	}
	s.command("hadoop", "fs", "-rm", "-r", "-skipTrash", s.top+"/files/tree").Succeed() // its hidden file would count as left over
}
