package cluster_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDetach: mrsubmit run -detach prints the id of the job or of the flow, and ends. With -json the
// only line has the ids and names of the jobs.
func TestDetach(t *testing.T) {
	c := start(t, small)
	in := c.file("in", "b a b\nc b a\n")
	detach := func(out string, args ...string) string {
		return c.mrsubmit(slices.Concat([]string{"run", "-detach"}, args, []string{"-input", in, "-output", filepath.Join(c.dir, out)})...).Succeed()
	}
	grep := []string{c.Program("grep"), "-e", "[a-c]", "-count"}
	job := detach("job", c.Program("wordcount"))
	if !regexp.MustCompile(`^job_\d+_\d{4,}\n$`).MatchString(job) {
		t.Fatalf("the job's id: %q", job)
	}
	flow := detach("flow", grep...)
	if !regexp.MustCompile(`^flow_\d+_\d{4,}\n$`).MatchString(flow) {
		t.Fatalf("the flow's id: %q", flow)
	}
	printed := detach("lines", append([]string{"-json"}, grep...)...)
	var line struct {
		Final bool
		Exit  *int
		Flow  string
		Jobs  []listedJob
	}
	if err := json.Unmarshal([]byte(printed), &line); err != nil || strings.Count(printed, "\n") != 1 {
		t.Fatalf("lines %q: %v", printed, err)
	}
	if !line.Final || line.Exit == nil || *line.Exit != 0 || len(line.Jobs) != 2 {
		t.Fatalf("line %s", printed)
	}
	first, second := line.Jobs[0], line.Jobs[1]
	number, isJob := strings.CutPrefix(first.ID, "job_")
	if !isJob || line.Flow != "flow_"+number || first.Name != "grep-search" || second.Name != "grep-sort" || second.ID == first.ID || first.State+second.State != "" {
		t.Fatalf("line %s", printed)
	}
	for id, jobs := range map[string]int{strings.TrimSpace(job): 1, strings.TrimSpace(flow): 2, line.Flow: 2} {
		var ended []listedJob
		if err := json.Unmarshal([]byte(c.mrsubmit("wait", "-json", id).Succeed()), &ended); err != nil {
			t.Fatal(err)
		}
		if len(ended) != jobs || slices.ContainsFunc(ended, func(j listedJob) bool { return j.State != "succeeded" }) {
			t.Errorf("%s: jobs %+v, want %d that succeeded", id, ended, jobs)
		}
	}
	for _, out := range []string{"flow", "lines"} {
		if got := string(readOutput(t, filepath.Join(c.dir, out, "grep-sort"))); got != "3\tb\n2\ta\n1\tc\n" {
			t.Errorf("the output %s is %q", out, got)
		}
	}
}

// listedJob has some fields of a job in JSON.
type listedJob struct{ ID, Name, State string }
