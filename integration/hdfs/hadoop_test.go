package hdfs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// TestJobsOfHadoop compares the bytes that word counts over HDFS read and write, and the permissions, replication
// and block sizes of their files, with those of Hadoop, which `make compat` records in testdata/jobs.txt.
func TestJobsOfHadoop(t *testing.T) {
	recorded, err := os.ReadFile("testdata/jobs.txt")
	if err != nil {
		t.Fatal(err)
	}
	in, err := os.ReadFile("../embedded/testdata/in")
	if err != nil {
		t.Fatal(err)
	}
	jobs := strings.Split(string(recorded), "\njob ")[1:]
	if len(jobs) != 4 {
		t.Errorf("%d jobs", len(jobs))
	}
	p := newPlatform(t, cluster(t))
	p.put("in/a", in)
	p.put("in/b", in)
	for _, job := range jobs {
		head, want, _ := strings.Cut(job, "\n")
		words := strings.Fields(head)
		name := words[0]
		top := p.top
		if name == "old" { // by paths without a scheme
			words = append(words, "fs.defaultFS=hdfs:///")
			top = strings.TrimPrefix(top, p.hdfs.URL())
		}
		args := []string{"-combine=" + words[1], "-input", top + "/in", "-output", top + "/" + name + "/below/out"}
		for _, property := range words[2:] {
			args = append(args, "-D", property)
		}
		run := p.submit("words", args...)
		run.Succeed()
		var got strings.Builder
		for _, c := range wire.HadoopCounters(wire.FileSystemCounters).Counters {
			if _, after, found := strings.Cut(run.Stderr.String(), "\t\tHDFS: "+c.Title+"="); found {
				n, _, _ := strings.Cut(after, "\n")
				fmt.Fprintf(&got, "counter %s HDFS_%s %s\n", wire.FileSystemCounters, c.Name, n)
			}
		}
		p.describe(&got, dfs.Join(p.top, name))
		if strings.TrimSpace(got.String()) != strings.TrimSpace(want) {
			t.Errorf("%s:\n%s\nwant, as in Hadoop,\n%s", head, got.String(), want)
		}
	}
}

// describe writes the attributes of a directory and of everything in it, as testdata/jobs.txt has them.
func (p *platform) describe(w *strings.Builder, url string) {
	p.t.Helper()
	a, err := p.fs.Attributes(url)
	if err != nil {
		p.t.Fatal(err)
	}
	path := strings.TrimPrefix(url, p.top) + " " + os.FileMode(a.Mode).String()[1:]
	if !a.Dir {
		fmt.Fprintln(w, "file", path, a.Size, a.Replicas, a.BlockSize)
		return
	}
	fmt.Fprintln(w, "directory", path)
	entries, err := p.fs.List(url)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		p.describe(w, e.Name)
	}
}
