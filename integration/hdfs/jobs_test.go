package hdfs_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/trial"
)

var megabytes = flag.Int("megabytes", 20, "megabytes of text for TestJobs; a third of it has blocks of a fiftieth of the text, the rest has blocks four times as large")

// Word count, sort and grep of a text in HDFS run embedded, and on a cluster with its staging
// directory in HDFS. The output is right, and both write the same files.
func TestJobs(t *testing.T) {
	c := cluster(t)
	all := text(*megabytes << 20)
	block := *megabytes << 20 / 50 &^ 511 // HDFS's checksums are of 512 bytes
	const pattern = "1f[0-9]-[a-z]*"
	cases := []struct {
		program, flags, sub string
		want                []byte
		merged              bool // sort all lines before the comparison: only each part file is sorted
	}{
		{"wordcount", "-D mapreduce.job.reduces=3", "", trial.CountWords(all), true},
		{"sort", "-D mapreduce.job.reduces=3", "", trial.SortLines(all), false},
		{"grep", "-e " + pattern, "", matching(all, pattern), false},
		{"grep", "-count -e " + pattern, "grep-sort", mostFrequent(all, pattern), false},
	}

	p := newPlatform(t, c) // after the preparations, because it starts the time limit
	third := bytes.IndexByte(all[len(all)/3:], '\n') + len(all)/3 + 1
	p.put("in/a", all[:third], withProperty("dfs.blocksize", fmt.Sprint(block)))
	p.put("in/b", all[third:], withProperty("dfs.blocksize", fmt.Sprint(4*block)))
	in := dfs.Join(p.top, "in")
	files := make(map[string][]byte) // outputs of the embedded runs
	for _, where := range []string{"embedded", "processes"} {
		if where == "processes" {
			p.start(daemonShape{jobTrackers: 3, nodes: p.hdfs.DataNodes, slots: 1, staging: dfs.Join(p.top, "staging")})
		}
		for i, j := range cases {
			what := fmt.Sprintf("%s %s %s", where, j.program, j.flags)
			out := dfs.Join(p.top, where, fmt.Sprint(i))
			p.submit(j.program, append([]string{"-input", in, "-output", out}, strings.Fields(j.flags)...)...).Succeed()
			parts := trial.ReadParts(t, p.fs, strings.TrimSuffix(dfs.Join(out, j.sub), "/"))
			for name, content := range parts {
				if key := fmt.Sprint(i, " ", name); where == "embedded" {
					files[key] = content
				} else {
					trial.CheckEqual(t, what+" "+name, content, files[key])
				}
				if j.merged && !slices.IsSorted(strings.SplitAfter(strings.TrimSuffix(string(content), "\n"), "\n")) {
					t.Errorf("%s: %s is not in order", what, name)
				}
			}
			got := trial.JoinParts(parts)
			if j.merged {
				got = trial.SortLines(got)
			}
			trial.CheckEqual(t, what, got, j.want)
			if err := p.fs.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// matching returns the right output of grep.
func matching(text []byte, pattern string) (lines []byte) {
	re := regexp.MustCompile(pattern)
	for line := range bytes.Lines(text) {
		if re.Match(line) {
			lines = append(lines, line...)
		}
	}
	return lines
}

// mostFrequent returns the right output of grep -count. Texts with the same count are sorted,
// because the first job sorts them.
func mostFrequent(text []byte, pattern string) (lines []byte) {
	counts := make(map[string]int)
	for _, match := range regexp.MustCompile(pattern).FindAll(text, -1) {
		counts[string(match)]++
	}
	matches := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	for _, match := range matches {
		lines = fmt.Appendf(lines, "%d\t%s\n", counts[match], match)
	}
	return lines
}
