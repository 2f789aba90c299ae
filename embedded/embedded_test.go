//go:build unix

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// inputs are one split each. Every partition has words from at least two inputs, so every
// home fetches from another tracker.
var inputs = []string{"a rose is a rose\n", "is a rose too\n", "to be or not to be\n"}

const reduces = 3

// wordCount counts words. Every reduce calls observe.
func wordCount(maps runtime.MapFunc, observe func(partition int)) runtime.Job {
	return runtime.Job{
		Maps: slices.Repeat([]runtime.MapFunc{maps}, len(inputs)),
		Reduce: func(t *runtime.Task, in runtime.Records) error {
			observe(t.ID.Task.N)
			out, err := t.Output("")
			if err != nil {
				return err
			}
			var word string
			n := 0
			more := in.Next()
			for more {
				word, n = string(in.Key()), 0
				for more && string(in.Key()) == word {
					n++
					more = in.Next()
				}
				if err := out.Write(fmt.Appendf(nil, "%s\t%d\n", word, n)); err != nil {
					return err
				}
			}
			return in.Err()
		},
	}
}

func splitWords(t *runtime.Task, in *runtime.Split, out runtime.Collector) error {
	for line := range in.Lines() {
		for word := range strings.FieldsSeq(line) {
			if err := out.Collect(int(word[0])%t.Partitions, []byte(word), nil); err != nil {
				return err
			}
		}
	}
	return in.Err()
}

// unsynced fails the test if a directory is synced. An embedded run must use the volatile
// file system for its output and its staged files.
type unsynced struct {
	dfs.FS
	t *testing.T
}

func (f unsynced) SyncDir(name string) error {
	f.t.Errorf("%s is synced", name)
	return nil
}

func (f unsynced) Volatile() dfs.FS { return dfs.Volatile(f.FS) }

// start starts a cluster that runs the attempts of a job in this process.
func start(t *testing.T, cfg Config, job runtime.Job) *Cluster {
	t.Helper()
	memory := dfs.Mux{"mem": unsynced{mem.New(1 << 20), t}, "file": unsynced{local.New(), t}}
	if err := memory.MkdirAll("mem://t/in"); err != nil {
		t.Fatal(err)
	}
	for i, text := range inputs {
		w, err := memory.Create("mem://t/in/" + strconv.Itoa(i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cfg.FS = memory
	cfg.Load = func(sub *wire.Submission) (*runtime.Program, error) {
		return &runtime.Program{Plan: sub.Plan, Jobs: []runtime.Job{job}}, nil
	}
	c, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func submit(t *testing.T, c *Cluster) []wire.JobID {
	t.Helper()
	plan := wire.JobPlan{Name: "words", Output: "mem://t/out", Format: "text", Reduces: reduces}
	for i := range inputs { // separate inputs, as small files of one input would share a map
		plan.Inputs = append(plan.Inputs, wire.InputPlan{Format: "lines", Paths: []string{"mem://t/in/" + strconv.Itoa(i)}})
	}
	sub := &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{plan}}}
	if err := client.Stage(c.FS(), c.Staging(), sub); err != nil {
		t.Fatal(err)
	}
	ids, err := c.Submit(t.Context(), *sub)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// succeed waits for the end of the jobs and returns the part files, in order.
func succeed(t *testing.T, c *Cluster, ids []wire.JobID) string {
	t.Helper()
	for statuses, err := range c.Watch(t.Context(), ids) {
		if err != nil {
			t.Fatal(err)
		}
		if s := statuses[0]; s.State.Ended() && s.State != wire.Succeeded {
			t.Fatalf("%v: %s", s.State, s.Error)
		}
	}
	var all strings.Builder
	for p := range reduces {
		f, err := c.FS().Open(fmt.Sprintf("mem://t/out/part-r-%05d", p))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&all, f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		all.WriteString("--\n")
	}
	return all.String()
}

func closeCluster(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.dir.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cluster's directory was not removed: %v", err)
	}
}

// TestTrackers: with a map on each of three trackers, every home fetches from the other
// trackers. The output is the same as with one tracker.
func TestTrackers(t *testing.T) {
	outputs := make(map[int]string)
	for _, trackers := range []int{1, 3} {
		dir := t.TempDir()
		var started atomic.Int32
		all := make(chan struct{})
		waitForAll := func(t *runtime.Task, in *runtime.Split, out runtime.Collector) error {
			if started.Add(1) == int32(len(inputs)) {
				close(all)
			}
			select {
			case <-all: // a waiting map keeps its slot, so each tracker gets one map
			case <-t.Ctx.Done():
			}
			return splitWords(t, in, out)
		}
		var fetched atomic.Int32 // number of partitions with fetched files
		c := start(t, Config{Dir: dir, Trackers: trackers, Slots: 3 / trackers}, wordCount(waitForAll, func(partition int) {
			home := fmt.Sprintf("home-%05d", partition)
			files, _ := filepath.Glob(filepath.Join(dir, "*", "*", "tracker*", "jobs", "*", home, "*"))
			if len(files) > 0 {
				fetched.Add(1)
			}
		}))
		outputs[trackers] = succeed(t, c, submit(t, c))
		if want := map[int]int32{1: 0, 3: reduces}[trackers]; fetched.Load() != want {
			t.Errorf("%d trackers: %d partitions were fetched, want %d", trackers, fetched.Load(), want)
		}
		closeCluster(t, c)
	}
	want := "is\t2\nor\t1\nrose\t3\n--\na\t3\n--\nbe\t2\nnot\t1\nto\t2\ntoo\t1\n--\n"
	for trackers, got := range outputs {
		if got != want {
			t.Errorf("%d trackers: %q, want %q", trackers, got, want)
		}
	}
}

// TestCloseWhileRunning: Close ends a job in the middle of a map.
func TestCloseWhileRunning(t *testing.T) {
	running := make(chan struct{}, len(inputs))
	c := start(t, Config{Dir: t.TempDir(), Trackers: 2}, wordCount(func(t *runtime.Task, _ *runtime.Split, _ runtime.Collector) error {
		running <- struct{}{}
		<-t.Ctx.Done()
		return t.Ctx.Err()
	}, func(int) {}))
	ids := submit(t, c)
	ended := make(chan error, 1)
	go func() {
		var last error
		for _, err := range c.Watch(context.Background(), ids) {
			last = err
		}
		ended <- last
	}()
	select {
	case <-running:
	case err := <-ended:
		t.Fatalf("the job ended by itself: %v", err)
	}
	closeCluster(t, c)
	if err := <-ended; err == nil {
		t.Error("Watch ended without an error, though the job had not ended")
	}
}

// TestDeadClusters: a start removes the files of killed clusters, and no others.
func TestDeadClusters(t *testing.T) {
	dir := t.TempDir()
	live := start(t, Config{Dir: dir}, wordCount(splitWords, func(int) {}))
	root := filepath.Dir(live.dir.path)
	dead := filepath.Join(root, "dead")
	if err := os.MkdirAll(filepath.Join(dead, "tracker1", "jobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	foreign, thesis := filepath.Join(root, "foreign"), filepath.Join(root, "mine", "thesis.tex")
	err := errors.Join(os.Mkdir(foreign, 0o700), os.Mkdir(filepath.Dir(thesis), 0o700), os.WriteFile(thesis, nil, 0o600),
		os.WriteFile(filepath.Join(filepath.Dir(thesis), datadir.LockName), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dead, datadir.LockName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second := start(t, Config{Dir: dir}, wordCount(splitWords, func(int) {}))
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a dead cluster's directory was not removed: %v", err)
	}
	for _, name := range []string{foreign, thesis} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("a file that no cluster made was removed: %v", err)
		}
	}
	if got := succeed(t, live, submit(t, live)); got == "" {
		t.Error("no output")
	}
	closeCluster(t, second)
	closeCluster(t, live)
	if err := errors.Join(os.Remove(foreign), os.RemoveAll(filepath.Dir(thesis))); err != nil {
		t.Fatal(err)
	}
	closeCluster(t, start(t, Config{Dir: dir}, wordCount(splitWords, func(int) {})))
	if _, err := os.Stat(root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last cluster did not remove the common directory: %v", err)
	}
}

// TestLinkProcess runs a copy of the test's executable, which removes itself and then starts
// itself by the link.
func TestLinkProcess(t *testing.T) {
	switch link := os.Getenv("EMBEDDED_TEST_LINK"); link {
	case "":
	case "follow":
		fmt.Println("started by the link")
		return
	default:
		self := os.Args[0]
		if err := errors.Join(linkProcess(self, link), os.Remove(self)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(link, "-test.run=^TestLinkProcess$")
		cmd.Env = append(os.Environ(), "EMBEDDED_TEST_LINK=follow")
		printed, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, printed)
		}
		os.Stdout.Write(printed)
		return
	}
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Skip("processes have no link to their executable here:", err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := copyProgram(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	if err := linkProcess(program, filepath.Join(dir, "other")); err == nil {
		t.Error("linked to this process, which runs another file")
	}
	cmd := exec.Command(program, "-test.run=^TestLinkProcess$")
	cmd.Env = append(os.Environ(), "EMBEDDED_TEST_LINK="+filepath.Join(dir, "link"))
	if printed, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(printed), "started by the link") {
		t.Errorf("%v: %s", err, printed)
	}
}

// TestRelativeDirectory: the property quern.embedded.dir may be a relative path.
func TestRelativeDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	c := start(t, Config{Dir: "here and there"}, wordCount(splitWords, func(int) {}))
	if got := succeed(t, c, submit(t, c)); got == "" {
		t.Error("no output")
	}
	closeCluster(t, c)
}

func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Dir: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file as directory: %v", err)
	}
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, fmt.Sprintf("quern-%d", os.Getuid()))); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Dir: dir}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a link instead of the directory: %v", err)
	}
	root := filepath.Join(t.TempDir(), fmt.Sprintf("quern-%d", os.Getuid()))
	if err := os.WriteFile(root, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Dir: filepath.Dir(root)}); err == nil || !strings.Contains(err.Error(), root) {
		t.Errorf("a file instead of the directory: %v", err)
	}
}

func TestFromProperties(t *testing.T) {
	load := func(*wire.Submission) (*runtime.Program, error) { return nil, nil }
	cfg, err := FromProperties(map[string]string{"quern.embedded.dir": "d", "quern.embedded.slots": "3",
		"quern.embedded.trackers": "2", "quern.task.inprocess": "true"}, load)
	if err != nil || cfg.Dir != "d" || cfg.Slots != 3 || cfg.Trackers != 2 || cfg.Load == nil {
		t.Errorf("%+v, %v", cfg, err)
	}
	if cfg, err := FromProperties(map[string]string{"quern.task.inprocess": "false"}, load); err != nil || cfg.Load != nil {
		t.Errorf("%+v, %v", cfg, err)
	}
	for _, bad := range []map[string]string{
		{"quern.embedded.slots": "many"}, {"quern.embedded.trackers": "-1"}, {"quern.task.inprocess": "true"},
	} {
		if _, err := FromProperties(bad, nil); err == nil {
			t.Errorf("FromProperties accepts %v", bad)
		}
	}
}
