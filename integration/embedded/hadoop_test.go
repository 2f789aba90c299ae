package embedded_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// hadoopJob is a job that Hadoop has run.
type hadoopJob struct {
	name       string
	combine    string
	properties []string
	counters   []string // GROUP NAME VALUE
	files      []string // NAME PERMISSIONS SIZE
}

// readHadoopJobs reads testdata/hadoop.txt.
func readHadoopJobs(t *testing.T) (jobs []hadoopJob) {
	text, err := os.ReadFile("testdata/hadoop.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch last := len(jobs) - 1; kind {
		case "job":
			words := strings.Fields(rest)
			jobs = append(jobs, hadoopJob{name: words[0], combine: words[1], properties: words[2:]})
		case "counter":
			jobs[last].counters = append(jobs[last].counters, rest)
		case "file":
			jobs[last].files = append(jobs[last].files, rest)
		}
	}
	return jobs
}

// ownCounters are counters that differ from Hadoop's, as docs/hadoop.md says.
var ownCounters = []string{wire.MapOutputBytes, wire.MapOutputFileBytes, wire.ReduceShuffleBytes, wire.SpilledRecords}

// TestHadoopJobs compares counters, file names, permissions and sizes of word counts with those of Hadoop's local
// runner, which `make compat` records in testdata/hadoop.txt.
func TestHadoopJobs(t *testing.T) {
	jobs := readHadoopJobs(t)
	if len(jobs) != 8 {
		t.Errorf("%d jobs", len(jobs))
	}
	content, err := os.ReadFile("testdata/in")
	if err != nil {
		t.Fatal(err)
	}
	in := write(t, filepath.Join(t.TempDir(), "in"), string(content))
	sampled := filepath.Join(t.TempDir(), "sampled.seq")
	succeed(t, "words", "-combine", "-ranges", "-input", in, "-output", filepath.Join(t.TempDir(), "out"), "-D", "mapreduce.job.reduces=3", "-D", "quern.totalorder.path="+sampled)
	recorded, err := filepath.Abs("testdata/ranges.seq")
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs {
		out := filepath.Join(t.TempDir(), "out")
		args := []string{"-combine=" + job.combine, "-input", in, "-output", out}
		for _, p := range append([]string{"quern.output.sync=false"}, job.properties...) {
			if name, file, _ := strings.Cut(p, "="); name == "mapreduce.totalorderpartitioner.path" {
				args = append(args, "-ranges")
				p = name + "=" + map[string]string{"ranges.seq": recorded, "sampled.seq": sampled}[file]
			}
			args = append(args, "-D", p)
		}
		counters := succeed(t, "words", args...).stderr
		for _, c := range job.counters {
			checkCounter(t, job, c, counters, len("file:"+in))
		}
		for _, f := range job.files {
			var name, permissions string
			var size int64
			fmt.Sscan(f, &name, &permissions, &size)
			info, err := os.Stat(filepath.Join(out, name))
			switch {
			case err != nil || !strings.HasSuffix(name, ".deflate") && info.Size() != size:
				t.Errorf("%s: %s: %v, want %d bytes", job.name, name, err, size)
			case slices.Contains(job.properties, "fs.permissions.umask-mode=027") && info.Mode().String() != "-"+permissions:
				t.Errorf("%s: %s has %s, want %s", job.name, name, info.Mode(), permissions)
			}
		}
		if entries, err := os.ReadDir(out); err != nil || len(entries) != len(job.files) {
			t.Errorf("%s: files %v, %v, want %v", job.name, entries, err, job.files)
		}
	}
}

// checkCounter compares a counter with the one that the program has printed under Hadoop's title. Counters of
// Hadoop that are zero may be missing.
func checkCounter(t *testing.T, job hadoopJob, counter, printed string, path int) {
	fields := strings.Split(counter, " ")
	n := len(fields)
	group, name := strings.Join(fields[:n-2], " "), fields[n-2]
	var want int64
	fmt.Sscan(fields[n-1], &want)
	known := wire.HadoopCounters(group)
	i := slices.IndexFunc(known.Counters, func(c wire.CounterTitle) bool { return c.Name == name })
	if want == 0 && i < 0 || slices.Contains(ownCounters, name) {
		return
	}
	if i < 0 {
		t.Fatalf("%s: no title for %s", job.name, counter)
	}
	title := known.Counters[i].Title
	got := int64(0)
	if _, after, found := strings.Cut(printed, "\t\t"+title+"="); found {
		fmt.Sscan(after, &got)
	}
	switch {
	case name == wire.SplitBytes:
		got -= got / (65 + int64(path)) * int64(path)
	case name == wire.BytesRead && job.name == "splits" && got >= want/2: // Hadoop reads more than a split
		return
	}
	if got != want {
		t.Errorf("%s: %s is %d, want %d\n%s", job.name, counter, got, want, printed)
	}
}
