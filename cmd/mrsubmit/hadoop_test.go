package main

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/hadooplog"
	"github.com/quernmr/quern/wire"
)

// answered runs a program of Hadoop without a cluster.
func answered(t *testing.T, env map[string]string, program string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	t.Setenv("HADOOP_CONF_DIR", "")
	t.Setenv("HADOOP_HOME", "")
	var out, messages bytes.Buffer
	tool := &tool{
		stdin: strings.NewReader(""), stdout: &out, stderr: &messages, getenv: func(name string) string { return env[name] },
		signals: client.Signals{}, embedded: embeddedCluster, poll: time.Millisecond,
	}
	code = tool.hadoop(t.Context(), program, args)
	return code, out.String(), messages.String()
}

// TestHadoopPrograms: commands that are answered without a cluster, and refusals.
func TestHadoopPrograms(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "hadoop-streaming.jar", "")
	write(t, "job.jar", "")
	write(t, "broken.jar", "no zip file")
	writeJar(t, "tools.jar", streamingClass)
	writeJar(t, "hadoop-streaming-tests.jar", "org.example.Main")
	write(t, "in", "b a\n")
	write(t, "conf/core-site.xml", "<configuration><property><name>fs.defaultFS</name><value>s3a://bucket</value></property></configuration>")
	usage := "option -D needs a value"
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string // pieces in this order, separated by "…"
	}{
		{"hadoop version", 0, "Hadoop 3.4.2\n…Quern", ""},
		{"hadoop", 0, "usage: hadoop COMMAND", ""},
		{"yarn version", 0, "Hadoop 3.4.2\n", ""},
		{"hadoop fs -cat in", 0, "b a\n", ""},
		{"hadoop dfs -fs file:/// -D a=b -ls -C in", 0, "in\n", ""},
		{"hdfs dfs -test -e none", 1, "", ""},
		{"hadoop fs -help ls cat", 0, "Usage: hadoop fs -ls [-C]…list files…Usage: hadoop fs -cat", ""},
		{"hadoop fs -usage -rm", 0, "Usage: hadoop fs -rm [-f]", ""},
		{"hadoop fs -help", 0, "Usage: hadoop fs COMMAND…-ls", ""},
		{"hadoop fs -help getfacl", 255, "", "-getfacl: hadoop fs does not have this command of Hadoop"},
		{"hadoop fs -D", 255, "", usage},
		{"hadoop fs -fs hdfs://n/dir -ls /", 255, "", "want a URL without a path"},
		{"hadoop fs -conf none.xml -ls /", 1, "", "-conf: open …/none.xml"},
		{"hadoop fs -libjars a.jar -ls /", 1, "", "-libjars a.jar is refused: Quern runs no Java"},
		{"hadoop fs -ls none", 1, "", "ls: `none': No such file or directory\n"},
		{"hadoop org.example.Main", 1, "", "org.example.Main is not answered: Quern runs no Java class…hadoop fs"},
		{"hdfs dfsadmin -report", 1, "", "hdfs: dfsadmin is not answered"},
		{"hadoop jar", 255, "", "RunJar jarFile"},
		{"hadoop jar none.jar Main", 255, "", "JAR does not exist or is not a normal file: none.jar"},
		{"hadoop jar job.jar Main", 1, "", "job.jar is not run: Quern runs no Java…docs/hadoop.md"},
		{"hadoop jar hadoop-streaming-tests.jar", 1, "", "is not run"},
		{"hadoop jar broken.jar", 1, "", "not a valid JAR: broken.jar"},
		{"hadoop jar hadoop-streaming.jar", 1, "", "ERROR streaming.StreamJob: no option of Streaming is given…\nStreaming Command Failed!\n"},
		{"hadoop jar hadoop-streaming.jar -info", 0, "Usage: hadoop jar", ""},
		{"hadoop jar /gone/hadoop-streaming-2.6.0-cdh5.jar -input none -output out -mapper cat", 5, "", "ERROR streaming.StreamJob: Error Launching job : …none…\nStreaming Command Failed!\n"},
		{"hadoop jar hadoop-streaming.jar -input in -output in -mapper cat", 5, "", "Error Launching job : Output directory file://…/in already exists: "},
		{"hadoop jar hadoop-streaming.jar -input in -output out -mapper cat -inputFormat x", 1, "", "unrecognized option -inputFormat"},
		{"hadoop jar hadoop-streaming.jar -libjars a.jar -input in -output out -mapper cat", 1, "", "-libjars a.jar is refused"},
		{"hadoop jar hadoop-streaming.jar -input in -output out -mapper cat -background", 1, "", "-background: without a job tracker"},
		{"mapred job -list", 0, "Total jobs:0\n                  JobId\t", ""},
		{"mapred job -status job_7_0001", 1, "", "Could not find job job_7_0001: no job tracker is known: set QUERN_JOBTRACKER"},
		{"mapred job -events job_7_0001 1 2", 255, "", "mapred job: -events is not answered: use mrsubmit trace JOB\n"},
		{"hadoop job -set-priority job_7_0001 HIGH", 255, "", "hadoop job: -set-priority is not answered: use mrsubmit set JOB priority=PRIORITY\n"},
		{"mapred job -nonsense", 255, "", "mapred job: -nonsense is not answered: docs/hadoop.md"},
		{"hadoop --config conf --loglevel WARN fs -ls -C in", 1, "", "s3a://bucket"},
		{"hdfs --config /none dfs -ls", 1, "", "hdfs: cannot find the configuration directory \"/none\" of --config\n"},
		{"hadoop --config", 1, "", "no parameter is provided for --config"},
		{"mapred job -kill", 255, "", "-kill has 0 arguments, want 1"},
		{"yarn application -list", 0, "Total number of applications (application-types: [], states: [SUBMITTED, ACCEPTED, RUNNING] and tags: []):0\n", ""},
		{"yarn node -list", 0, "Total Nodes:0\n         Node-Id\t     Node-State\tNode-Http-Address\tNumber-of-Running-Containers\n", ""},
		{"yarn node -status n", 255, "", "yarn node -status n is not answered: want -list"},
		{"yarn node -list -states", 255, "", "option -states of yarn node -list is not supported, or needs a value"},
		{"yarn application -movetoqueue a", 255, "", "yarn application: -movetoqueue is not answered: use mrsubmit set JOB pool=POOL\n"},
		{"yarn logs -applicationId application_7_0001", 255, "Can not find the logs for the application: application_7_0001", ""},
		{"yarn logs -applicationId job_7_0001", 255, "", "not an id of an application"},
	} {
		args := strings.Fields(c.args)
		code, stdout, stderr := answered(t, map[string]string{"HADOOP_LOG_DIR": filepath.Join(dir, "logs")}, args[0], args[1:]...)
		if code != c.code || !inOrder(stdout, c.stdout) || !inOrder(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: exit code %d, want %d\nstdout %s\nwant   %s\nstderr %s\nwant   %s", c.args, code, c.code, stdout, c.stdout, stderr, c.stderr)
		}
	}
	code, _, stderr := answered(t, nil, "mapred", "streaming", "-D", "mapreduce.job.name=x", "-input", "in", "-output", "out", "-mapper", "cat", "-reducer", "cat")
	if got, err := os.ReadFile("out/part-00000"); code != 0 || err != nil || string(got) != "b a\t\n" {
		t.Errorf("mapred streaming: exit code %d, %q, %v: %s", code, got, err, stderr)
	}
	code, _, stderr = answered(t, nil, "hadoop", "jar", "tools.jar", streamingClass, "-input", "in", "-output", "out2", "-mapper", "cat")
	if code != 0 {
		t.Errorf("a jar with Streaming's main class: exit code %d: %s", code, stderr)
	}
	write(t, "conf.xml", "<configuration><property><name>fs.defaultFS</name><value>hdfs://y:1</value></property></configuration>")
	for i, options := range []string{ // as in Hadoop, -D wins over -fs in any order, and -fs over -conf
		"-fs local -conf conf.xml", "-conf conf.xml -fs file:///", "-fs hdfs://x:1 -D fs.default.name=file:///", "-D fs.defaultFS=file:/// -fs hdfs://x:1 -conf conf.xml",
	} {
		out := fmt.Sprint("default", i)
		args := append(append([]string{"streaming"}, strings.Fields(options)...), "-input", "in", "-output", out, "-mapper", "printenv fs_defaultFS", "-reducer", "NONE")
		code, _, stderr = answered(t, nil, "mapred", args...)
		if got, err := os.ReadFile(out + "/part-00000"); code != 0 || err != nil || string(got) != "file:///\t\n" {
			t.Errorf("%s: exit code %d, the commands see %q, %v: %s", options, code, got, err, stderr)
		}
	}
}

// TestHadoopCause: the exception at the end of a long traceback is in the record of the attempt and in that of the job,
// also if the command is long.
func TestHadoopCause(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in", "b a\n")
	write(t, "map.sh", "cat; for i in 1 2 3 4 5 6 7 8 9; do echo at $i "+strings.Repeat("x", 150)+" >&2; done; echo 'ValueError: no b' >&2; exit 1")
	code, _, stderr := answered(t, nil, "mapred", "streaming", "-D", "mapreduce.map.maxattempts=1", "-files", "map.sh",
		"-input", "in", "-output", "out", "-mapper", "sh map.sh "+strings.Repeat("y", 1000))
	if code != 1 || !inOrder(stderr, "Status : FAILED\n…subprocess failed with code 1\n…subprocess failed with code 1: ValueError: no b; its split is file:…FAILED due to: …ValueError: no b") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestHadoopLogs: the logs of more attempts are saved than the job tracker serves histories at a time.
func TestHadoopLogs(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	write(t, "in", strings.Repeat("b a\n", 10))
	properties := []string{"mapreduce.input.fileinputformat.split.maxsize=4", "mapreduce.map.maxattempts=1", "mapreduce.map.failures.maxpercent=60"}
	args := []string{"streaming"}
	for _, p := range properties {
		args = append(args, "-D", p)
	}
	args = append(args, "-input", "in", "-output", "out", "-mapper", "false")
	code, _, stderr := answered(t, map[string]string{"HADOOP_LOG_DIR": filepath.Join(dir, "logs")}, "mapred", args...)
	saved, err := filepath.Glob("logs/userlogs/application_*/attempt_*/stderr")
	if code != 1 || err != nil || len(saved) < 6 || strings.Contains(stderr, "are not saved") {
		t.Errorf("exit code %d, saved %v, %v: %s", code, saved, err, stderr)
	}
}

// fakeFailures has attempts with logs of the same size.
type fakeFailures struct{ size int }

func (fakeFailures) failed(context.Context, wire.JobID) ([]hadooplog.Attempt, error) { return nil, nil }

func (f fakeFailures) read(context.Context, wire.AttemptID, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(strings.Repeat("x", f.size))), nil
}

// TestHadoopLogsBound: logs are saved up to a bound, in which small ones count as blocks of a disk. A warning names the number of attempts without logs.
func TestHadoopLogsBound(t *testing.T) {
	for _, c := range []struct {
		size, attempts, saved int
		want                  string
	}{
		{1, 9, 9, ""},
		{1, 10, 9, "the logs of 1 failed attempt are not saved in DIR: those of the first 9 have 100.0 KiB\n"},
		{20 << 10, 9, 3, "the logs of 6 failed attempts are not saved in DIR: those of the first 3 have 100.0 KiB\n"},
	} {
		dir := t.TempDir()
		var messages bytes.Buffer
		tool := &tool{stderr: &messages, getenv: func(string) string { return dir }}
		r := &hadoopRun{tool: tool, log: tool.hadoopLog()}
		var attempts []hadooplog.Attempt
		for i := range c.attempts {
			id, err := wire.ParseAttemptID(fmt.Sprintf("attempt_7_0001_m_%06d_1000", i))
			if err != nil {
				t.Fatal(err)
			}
			attempts = append(attempts, hadooplog.Attempt{ID: id, Error: "boom"})
		}
		r.saveLogs(t.Context(), attempts, fakeFailures{c.size}, 100<<10)
		saved, err := filepath.Glob(dir + "/userlogs/application_7_0001/attempt_*/stderr")
		if text := strings.ReplaceAll(messages.String(), dir, "DIR"); err != nil || len(saved) != c.saved || !strings.HasSuffix(text, c.want) || c.want == "" && text != "" {
			t.Errorf("%d attempts with %d bytes: saved %d, %v: %q", c.attempts, c.size, len(saved), err, text)
		}
	}
}

func writeJar(t *testing.T, name, class string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("META-INF/MANIFEST.MF")
	if err != nil {
		t.Fatal(err)
	}
	line := "Main-Class: " + class
	if _, err := w.Write([]byte("Manifest-Version: 1.0\r\n" + line[:20] + "\r\n " + line[20:] + "\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, name, b.String())
}

// TestHadoopDefaultFS: -fs wins over -D, -D over -conf wherever it is, and -conf over the configuration.
func TestHadoopDefaultFS(t *testing.T) {
	conf := t.TempDir()
	t.Setenv("HADOOP_CONF_DIR", conf)
	t.Chdir(t.TempDir())
	write(t, "conf.xml", "<configuration><property><name>fs.defaultFS</name><value>hdfs://x:1</value></property></configuration>")
	write(t, "final.xml", "<configuration><property><name>fs.default.name</name><value>hdfs://y:1\n</value><final>true</final></property></configuration>")
	for _, c := range []struct{ conf, args, want string }{
		{"", "", ""},
		{"hdfs://c:1", "", "hdfs://c:1/"},
		{"hdfs://c:1", "-D fs.defaultFS=hdfs://p:1", "hdfs://p:1/"},
		{"hdfs://c:1", "-Dfs.default.name=hdfs://p:1", "hdfs://p:1/"},
		{"hdfs://c:1", "-D fs.defaultFS=hdfs://p:1 -fs hdfs://f:1", "hdfs://p:1/"},
		{"hdfs://c:1", "-conf conf.xml", "hdfs://x:1/"},
		{"hdfs://c:1", "-D fs.defaultFS=hdfs://p:1 -conf conf.xml", "hdfs://p:1/"},
		{"hdfs://c:1", "-Dfs.default.name=hdfs://p:1 -conf conf.xml", "hdfs://p:1/"},
		{"hdfs://c:1", "-D host=h -D fs.defaultFS=hdfs://${host}:1", "hdfs://h:1/"},
		{"hdfs://c:1", "-conf final.xml -conf conf.xml", "hdfs://y:1/"},
		{"hdfs://c:1", "-conf conf.xml -D fs.defaultFS=hdfs://p:1", "hdfs://p:1/"},
		{"hdfs://c:1", "-fs local", ""},
		{"hdfs://c:1", "-fs file:///", ""},
	} {
		write(t, filepath.Join(conf, "core-site.xml"), "<configuration><property><name>fs.defaultFS</name><value>"+c.conf+"</value></property></configuration>")
		g, rest, err := parseGeneric(append(strings.Fields(c.args), "-ls", "-D"))
		if err != nil || !slices.Equal(rest, []string{"-ls", "-D"}) {
			t.Fatalf("%q: %v, %v", c.args, rest, err)
		}
		if got, err := defaultFS(g); got != c.want || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// TestHadoopFSProperties: -D and -conf change what hadoop fs does, also with local files. A property that the file systems
// do not read causes a warning.
func TestHadoopFSProperties(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in", "text\n")
	site := func(name, property, value string) {
		write(t, name, "<configuration><property><name>"+property+"</name><value>"+value+"</value><final>true</final></property></configuration>")
	}
	site("conf.xml", "dfs.umaskmode", "027")
	site("site/core-site.xml", "fs.permissions.umask-mode", "007")
	for _, c := range []struct {
		args   string
		code   int
		file   string
		mode   os.FileMode
		stderr string
	}{
		{"fs -D fs.permissions.umask-mode=077 -put in a", 0, "a", 0o600, ""},
		{"fs -Dfs.permissions.umask-mode=077 -mkdir -p d/e", 0, "d", os.ModeDir | 0o700, ""},
		{"fs -Ddfs.umaskmode=077 -get in b", 0, "b", 0o600, ""},
		{"fs -conf conf.xml -D x.y=077 -touchz c", 0, "c", 0o640, ""},
		{"fs -D fs.permissions.umask-mode=${x} -D x=002 -conf conf.xml -touchz v", 0, "v", 0o664, ""},
		{"--config site fs -conf conf.xml -touchz s", 0, "s", 0o660, "warning: property fs.permissions.umask-mode of -conf has no effect: it is final in core-site.xml\n"},
		{"--config site fs -D fs.permissions.umask-mode=022 -touchz t", 0, "t", 0o644, ""},
		{"fs -D fs.permissions.umask-mode=99 -put in e", 1, "", 0, `put: configuration of Hadoop: fs.permissions.umask-mode: umask "99"`},
		{"fs -D dfs.client.socket-timeout=1 -D dfs.nameservices=n -D mapreduce.job.name=n -D dfs.umaskmode=022 -touchz w", 0, "w", 0o644,
			"warning: property dfs.client.socket-timeout has no effect: Quern's file systems do not read it\n"},
	} {
		code, stdout, stderr := answered(t, nil, "hadoop", strings.Fields(c.args)...)
		if code != c.code || stdout != "" || !strings.HasPrefix(stderr, c.stderr) || strings.Count(stderr, "\n") > 1 || c.stderr == "" && stderr != "" {
			t.Errorf("%s: exit code %d, %q, %q", c.args, code, stdout, stderr)
		}
		if c.file == "" {
			continue
		}
		if info, err := os.Stat(c.file); err != nil || info.Mode() != c.mode {
			t.Errorf("%s: %v, %v", c.args, info, err)
		}
	}
}

// TestGetConf compares hdfs getconf with the answers of Hadoop 3.4.2's GetConf to the same files.
func TestGetConf(t *testing.T) {
	dir := t.TempDir()
	site := func(name string, pairs ...string) {
		text := "<configuration>"
		for i := 0; i < len(pairs); i += 2 {
			text += "<property><name>" + pairs[i] + "</name><value>" + pairs[i+1] + "</value></property>"
		}
		write(t, filepath.Join(dir, name), text+"</configuration>")
	}
	for _, name := range []string{"one", "two", "none"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	site("one/core-site.xml", "fs.defaultFS", "hdfs://nn1:9000", "a.b", " x${c.d} ", "c.d", "y", "e", "")
	site("two/core-site.xml", "fs.defaultFS", "hdfs://ns")
	site("two/hdfs-site.xml", "dfs.nameservices", "ns", "dfs.ha.namenodes.ns", "n1,n2", "dfs.namenode.rpc-address.ns.n1", "h1:8020", "dfs.namenode.rpc-address.ns.n2", "h2:8021")
	const incorrect = "Incorrect configuration: namenode address dfs.namenode.servicerpc-address.[] or dfs.namenode.rpc-address.[] is not configured.\n"
	for _, c := range []struct {
		conf, args     string
		code           int
		stdout, stderr string // stderr: the beginning
	}{
		{"one", "-confKey a.b", 0, "xy\n", ""},
		{"one", "-confKey fs.defaultFS", 0, "hdfs://nn1:9000\n", ""},
		{"none", "-confKey fs.defaultFS", 0, "file:///\n", ""},
		{"one", "-confKey dfs.replication", 0, "3\n", ""},
		{"one", "-D q=r -confKey q", 0, "r\n", ""},
		{"one", "-D c.d=z -confKey a.b", 0, "xz\n", ""},
		{"one", "-fs hdfs://nn2 -nnRpcAddresses", 0, "nn2:8020\n", ""},
		{"one", "-confKey nosuch", 255, "", "Configuration nosuch is missing."},
		{"one", "-confKey e", 255, "", "Configuration e is missing."},
		{"one", "-confKey", 255, "", "usage: -confKey [key]\n"},
		{"one", "-confKey a b", 255, "", "usage: -confKey [key]\n"},
		{"one", "-namenodes", 0, "nn1\n", ""},
		{"one", "-namenodes x", 255, "", "Did not expect argument: x\n"},
		{"one", "-nnRpcAddresses", 0, "nn1:9000\n", ""},
		{"two", "-namenodes", 0, "h1 h2\n", ""},
		{"two", "-nnRpcAddresses", 0, "h1:8020\nh2:8021\n", ""},
		{"none", "-namenodes", 255, "", incorrect},
		{"none", "-nnRpcAddresses", 255, "", incorrect},
		{"one", "", 255, "", "hdfs getconf: want -confKey KEY"},
		{"one", "-journalNodes", 255, "", "hdfs getconf: -journalNodes is not answered"},
	} {
		t.Setenv("HADOOP_CONF_DIR", filepath.Join(dir, c.conf))
		var out, messages bytes.Buffer
		tool := &tool{stdout: &out, stderr: &messages, getenv: os.Getenv}
		code := tool.hadoop(t.Context(), "hdfs", append([]string{"getconf"}, strings.Fields(c.args)...))
		if stderr := messages.String(); code != c.code || out.String() != c.stdout || !strings.HasPrefix(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: getconf %s: exit code %d, %q, %q", c.conf, c.args, code, out.String(), stderr)
		}
	}
}

// TestHadoopQueries: what mapred and yarn print about jobs of a cluster. A kill names the user.
func TestHadoopQueries(t *testing.T) {
	f := newFake(t)
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"mapred job -list", 0, "Total jobs:2\n…JobId\t…JobName…AM info\n             job_7_0004\t…soon…RUNNING…default…NORMAL…\n             job_7_0002\t…so?rt…RUNNING…etl\t      HIGH\t              2\t              0\t     N/A", ""},
		{"mapred job -list all", 0, "Total jobs:4\n…job_7_0003\t…FAILED…job_7_0001…words\t SUCCEEDED…ann", ""},
		{"mapred job -status job_7_0001", 0, "\nJob: job_7_0001\nJob File: N/A\n…Number of maps: 2\nNumber of reduces: 0\nmap() completion: 1.0\nreduce() completion: 0.0\nJob state: SUCCEEDED\nretired: false\nreason for failure: \nCounters: 1\n\tMap-Reduce Framework\n\t\tMap input records=3\n", ""},
		{"mapred job -status job_7_0002", 0, "map() completion: 0.25\n", ""},
		{"mapred job -status job_1_0001", 255, "Could not find job job_1_0001\n", ""},
		{"mapred job -status nonsense", 1, "", `not an id of a job: "nonsense"`},
		{"mapred job -counter job_7_0001 org.apache.hadoop.mapreduce.TaskCounter MAP_INPUT_RECORDS", 0, "3\n", ""},
		{"mapred job -counter job_7_0001 org.apache.hadoop.mapred.Task$Counter MAP_INPUT_RECORDS", 0, "3\n", ""},
		{"mapred job -counter job_7_0001 none MAP_INPUT_RECORDS", 0, "0\n", ""},
		{"mapred job -history job_6_0009", 0, "Hadoop job: job_6_0009\n…User: me\nJobName: old\n…(1m0s)\nStatus: FAILED\n…FAILED attempts\n…attempt_6_0009_m_000000_1000\t…boom\nstack\n", ""},
		{"mapred job -kill job_7_0001", 255, "Could not kill the job job_7_0001, as it has already succeeded.\n", ""},
		{"mapred job -kill job_7_0003", 255, "Could not mark the job job_7_0003 as killed, as it has already failed.\n", ""},
		{"hadoop job -kill job_7_0002", 0, "Killed job job_7_0002\n", ""},
		{"yarn application -list", 0, "RUNNING] and tags: []):2\n                Application-Id\t…            application_7_0004\t                soon\t           MAPREDUCE\t…RUNNING\t         UNDEFINED\t", ""},
		{"yarn application -list -appStates finished,killed", 0, "states: [FINISHED, KILLED] and tags: []):2\n…application_7_0003…FINISHED\t            FAILED\t           100%", ""},
		{"yarn application -list -appTypes SPARK -appStates ALL", 0, "states: [] and tags: []):0\n", ""},
		{"yarn application -list -appTypes mapreduce,spark", 0, "RUNNING] and tags: []):2\n", ""},
		{"yarn application -list -appTags", 255, "", "option -appTags of yarn application -list is not supported"},
		{"yarn application -list -appStates ALL", 0, "states: [ALL] and tags: []):4\n", ""},
		{"yarn application -status application_7_0002", 0, "Application Report : \n\tApplication-Id : application_7_0002\n\tApplication-Name : so?rt\n…State : RUNNING\n\tFinal-State : UNDEFINED\n", ""},
		{"yarn application -status application_1_0001", 255, "Application with id 'application_1_0001' doesn't exist in RM.\n", ""},
		{"yarn app -kill application_7_0001 application_7_0004", 0, "Application application_7_0001 has already finished \nKilling application application_7_0004\n", ""},
		{"yarn node -list", 0, "Total Nodes:1\n…RUNNING\t…", ""},
		{"yarn node -list -states lost,unhealthy", 0, "Total Nodes:2\n…UNHEALTHY\t…LOST\t…\t                           0\n", ""},
		{"yarn node -list -all", 0, "Total Nodes:…RUNNING\t…LOST\t", ""},
		{"yarn logs -applicationId application_7_0001 -log_files stderr", 1, "Container: attempt_7_0001_m_000000_1000 on t1\nLogAggregationType: AGGREGATED\n====…LogType:stderr\nLogLastModifiedTime:…LogLength:62\nLogContents:\nwords of job_7_0001/attempt_7_0001_m_000000_1000/stderr, tail \nEnd of LogType:stderr\n", "the address of tracker t2 is not known"},
	} {
		args := strings.Fields(c.args)
		var out, messages bytes.Buffer
		tool := &tool{stdout: &out, stderr: &messages, getenv: func(name string) string {
			return map[string]string{"QUERN_JOBTRACKER": f.addr, "QUERN_INSECURE": "1"}[name]
		}}
		code := tool.hadoop(t.Context(), args[0], args[1:])
		if stdout, stderr := out.String(), messages.String(); code != c.code || !inOrder(stdout, c.stdout) || !inOrder(stderr, c.stderr) || c.stderr == "" && stderr != "" {
			t.Errorf("%s: exit code %d, want %d\nstdout %s\nwant   %s\nstderr %s\nwant   %s", c.args, code, c.code, stdout, c.stdout, stderr, c.stderr)
		}
	}
	user := userName(nil, os.Getenv)
	if want := []string{"job_7_0002 killed by " + user, "job_7_0004 killed by " + user}; !slices.Equal(f.killed, want) {
		t.Errorf("killed %q, want %q", f.killed, want)
	}
}
