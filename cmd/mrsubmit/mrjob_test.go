package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/mrjob"
)

const mrjobTestdata = "../../integration/mrjob/testdata"

// standIn is the python3 of a replay: it runs shell scripts that do what the jobs do.
const standIn = "#!/bin/sh\ncase $1 in -c) exit 0 ;; esac\nexec sh \"$@\"\n"

// TestMrjob replays what the real mrjob has called: exit codes, listings and outputs are the recorded ones, and mrjob's
// patterns find ids, counters, the output and the failure in the messages of jobs. make compat records the calls again.
func TestMrjob(t *testing.T) {
	names, err := filepath.Glob(mrjobTestdata + "/*.json")
	if err != nil || len(names) < 4 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		s, err := mrjob.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		script, err := os.ReadFile(strings.TrimSuffix(name, ".json") + ".sh")
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) { replay(t, s, string(script)) })
	}
}

func replay(t *testing.T, s *mrjob.Session, script string) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := errors.Join(os.Mkdir(bin, 0o777), os.WriteFile(filepath.Join(bin, "python3"), []byte(standIn), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Chdir(dir)
	write(t, "mrjob.zip", "")
	for name, text := range s.Files {
		if strings.HasSuffix(name, ".py") {
			text = script
		}
		write(t, name, strings.ReplaceAll(text, "/tmp/wrapper.lock.KEY", filepath.Join(dir, "lock")))
	}
	for name, files := range s.Archives {
		packed, err := mrjob.Pack(name, files)
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, string(packed))
	}
	application := ""
	for _, c := range s.Calls {
		args := slices.Clone(c.Args)
		for i, arg := range args {
			if args[0] == "fs" && args[1] == "-put" && i == 2 { // a file of mrjob, wherever it was
				arg = filepath.Base(arg)
			}
			args[i] = strings.NewReplacer("application_ID", application, "file://DIR", "file://"+dir, "JAR", "hadoop-streaming.jar").Replace(arg)
		}
		code, stdout, stderr := answered(t, map[string]string{"HADOOP_LOG_DIR": filepath.Join(dir, "logs")}, "hadoop", args...)
		if code != c.Exit {
			t.Errorf("%q: exit code %d, want %d: %s", args, code, c.Exit, stderr)
		}
		switch {
		case c.Args[0] == "jar":
			application = understand(t, dir, s, &c, args, stderr)
		case slices.Contains(args, "-ls"):
			stdout = mrjob.Names(stdout)
		case args[0] == "version":
			stdout, _, _ = strings.Cut(stdout, "\n")
		}
		want := strings.ReplaceAll(c.Out, "DIR", dir)
		if !slices.Equal(slices.Sorted(strings.Lines(stdout)), slices.Sorted(strings.Lines(want))) {
			t.Errorf("%q: got\n%s\nwant\n%s", args, stdout, want)
		}
	}
}

// understand checks what mrjob finds in the messages of a job, and returns the application's id.
func understand(t *testing.T, dir string, s *mrjob.Session, c *mrjob.Call, args []string, text string) (application string) {
	t.Helper()
	messages := mrjob.Messages(text)
	job, output, attempt := "", "", ""
	var counters map[string]map[string]int64
	for _, m := range messages {
		first, _, _ := strings.Cut(m, "\n")
		if id, ok := strings.CutPrefix(first, "Submitted application "); ok {
			application = id
		}
		if id, ok := strings.CutPrefix(first, "Running job: "); ok {
			job = id
		}
		if at, ok := strings.CutPrefix(first, "Output directory: "); ok {
			output = at
		}
		if rest, ok := strings.CutPrefix(first, "Task Id : "); ok {
			attempt, _, _ = strings.Cut(rest, ", Status : FAILED")
		}
		if found := mrjob.Counters(m); found != nil {
			counters = found
		}
	}
	if application == "" || job != strings.Replace(application, "application", "job", 1) || !slices.Contains(messages, " map 100% reduce 100%") && s.Exit == 0 {
		t.Errorf("application %q, job %q in %s", application, job, text)
	}
	if s.Exit == 0 {
		if want := args[slices.Index(args, "-output")+1]; output != want || !reflect.DeepEqual(counters, c.Counters) {
			t.Errorf("output %q, want %q; counters\n%v, want\n%v", output, want, counters, c.Counters)
		}
		return application
	}
	checkLogs(t, dir, s, application, attempt)
	return application
}

// checkLogs checks the saved logs of a failed attempt.
func checkLogs(t *testing.T, dir string, s *mrjob.Session, application, attempt string) {
	t.Helper()
	logs := filepath.Join(dir, "logs", "userlogs", application, attempt)
	for name, mode := range map[string]fs.FileMode{logs: 0o700, filepath.Dir(logs): 0o700, filepath.Join(logs, "stderr"): 0o600, filepath.Join(logs, "syslog"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode { // logs are for the job's owner
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, mode)
		}
	}
	syslog, err := os.ReadFile(filepath.Join(logs, "syslog"))
	if err != nil || attempt == "" {
		t.Fatalf("attempt %q: %v", attempt, err)
	}
	if text := " INFO [main] org.apache.hadoop.mapred.MapTask: Processing split: file:" + dir + "/"; !strings.Contains(string(syslog), text) {
		t.Errorf("no %q in %s", text, syslog)
	}
	stderr, err := os.ReadFile(filepath.Join(logs, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	found := string(stderr) + string(syslog)
	for _, text := range s.Says {
		if !strings.Contains(found, text) && !slices.ContainsFunc([]string{"Probable", "while", "Step"}, func(own string) bool { return strings.HasPrefix(text, own) }) { // mrjob's own words
			t.Errorf("no %q in the logs: %s", text, found)
		}
	}
	if code, out, _ := answered(t, map[string]string{"HADOOP_LOG_DIR": filepath.Join(dir, "logs")}, "yarn", "logs", "-applicationId", application); code != 0 || !inOrder(out, "Container: "+attempt+" on localhost…LogType:stderr\nLogLength:"+strconv.Itoa(len(stderr))+"\nLogContents:\n…ValueError…End of LogType:stderr\n") {
		t.Errorf("yarn logs: exit code %d: %s", code, out)
	}
	if at := bytes.LastIndex(stderr, []byte("\n+ ")); at < 0 || !bytes.Contains(stderr[at:], []byte("ValueError")) { // mrjob shows what follows the last command
		t.Errorf("stderr: %s", stderr)
	}
}
