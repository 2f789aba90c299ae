package shuffle

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/wire"
)

// TestScenarios runs testdata/*.txt. Records are lines of partition, key and
// value. Verbs:
//
//	collect partitions=N memory=BYTES [combine=sum]   collect the records and print the segment file
//	merge fan-in=N                                    merge runs of one partition; lines have key and value, lines of -- separate runs
//	groups runs=N fan-in=N                            print the number of runs in each merge, one line per round
func TestScenarios(t *testing.T) {
	scenarios, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scenarios) == 0 {
		t.Fatal(scenarios, err)
	}
	for _, path := range scenarios {
		t.Run(filepath.Base(path), func(t *testing.T) { datadriven.RunTest(t, path, scenario) })
	}
}

func scenario(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "collect":
		return scenarioCollect(t, d)
	case "merge":
		return scenarioMerge(t, d)
	case "groups":
		return scenarioGroups(t, d)
	}
	d.Fatalf(t, "unknown verb %s", d.Cmd)
	return ""
}

func scenarioCollect(t *testing.T, d *datadriven.TestData) string {
	var cfg Config
	var combine string
	d.ScanArgs(t, "partitions", &cfg.Partitions)
	d.ScanArgs(t, "memory", &cfg.Memory)
	if d.MaybeScanArgs(t, "combine", &combine); combine == "sum" {
		cfg.Combine = combineSum
	}
	var recs []rec
	for line := range strings.Lines(d.Input) {
		var r rec
		if _, err := fmt.Sscan(line, &r.partition, &r.key, &r.value); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		recs = append(recs, r)
	}
	cfg, out := collect(t, cfg, recs)
	var b strings.Builder
	s := out.Stats
	fmt.Fprintf(&b, "records=%d bytes=%d spills=%d spilled=%d combined=%d->%d\n",
		s.Records, s.Bytes, s.Spills, s.Spilled, s.CombineIn, s.CombineOut)
	for p := range cfg.Partitions {
		for _, r := range readSegments(t, p, MergeOptions{}, cfg.File) {
			fmt.Fprintln(&b, r.partition, r.key, r.value)
		}
	}
	return b.String()
}

func scenarioMerge(t *testing.T, d *datadriven.TestData) string {
	opts := MergeOptions{Dir: tempDir(t)}
	d.ScanArgs(t, "fan-in", &opts.FanIn)
	var segments []wire.Segment
	for run := range strings.SplitSeq(d.Input, "--\n") {
		var recs []rec
		for line := range strings.Lines(run) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			recs = append(recs, rec{0, key, value})
		}
		cfg, _ := collect(t, Config{Partitions: 1, Memory: 1 << 16}, recs)
		segments = append(segments, wholePartition(t, cfg.File, 0))
	}
	merged, err := MergeTo(t.Context(), segments, filepath.Join(tempDir(t), "merged"), opts, nil)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, r := range readSegments(t, 0, MergeOptions{}, merged.File) {
		fmt.Fprintln(&b, r.key, r.value)
	}
	return b.String()
}

func scenarioGroups(t *testing.T, d *datadriven.TestData) string {
	var n, fanIn int
	d.ScanArgs(t, "runs", &n)
	d.ScanArgs(t, "fan-in", &fanIn)
	var b strings.Builder
	for n > fanIn {
		sizes := groups(n, fanIn)
		fmt.Fprintln(&b, sizes)
		n = len(sizes)
	}
	return b.String()
}
