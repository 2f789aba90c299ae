package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Task is the attempt, as the job's code sees it. Only the worker loop makes complete
// Tasks: a literal Task has no outputs and no files. Counters are safe for concurrent use,
// outputs are not.
type Task struct {
	Ctx        context.Context // ends when the attempt must end
	ID         wire.AttemptID
	Plan       *wire.JobPlan
	Partitions int // reduces of the job, 0 in a map-only job

	// Cuts are the boundaries of a total order, sorted, one fewer than Partitions. A key's
	// partition is the number of cuts that are not greater than the key. While the setup
	// attempt samples the input to find them, they are nil, and every key has partition 0.
	Cuts [][]byte

	// Division divides the records of keys with several cuts, or of one with a place. nil: cuts divide no key.
	Division *Division

	pulse  pulse
	mu     sync.Mutex // guards status, taskCounters and taskSides
	status string
	taskCounters
	taskSides

	fs      dfs.FS
	work    string // the attempt's working directory
	dir     string // the attempt's own directory
	outputs *outputs
	cancel  context.CancelCauseFunc // of Ctx; nil: the attempt cannot be cancelled

	combining func() string // as in Combining; nil: not known
}

// taskCounters are the counters of an attempt.
type taskCounters struct {
	counters     map[counterName]*Counter
	counterNames wire.Counters       // to check the limits
	limits       *wire.CounterLimits // the job's; nil until a counter is used
	counterErr   error               // for the first counter beyond the limits
}

// taskSides are the side files of an attempt.
type taskSides struct {
	files       map[string]string // local paths of those fetched so far
	parts       map[string][]SidePart
	directories map[string]string // local paths of those that are directories
	copied      bool              // also local directories are copied

	stagedList  string     // file with the list of side files from the job's start; empty: not known
	stagedSides *sideFiles // its content, once read
	usedSides   []string
	partsOf     func(from int) ([]dfs.Info, error) // lists the output of an earlier job of the flow
}

type counterName struct{ group, name string }

// Counter is a sum that the attempt reports. Get it once, not for every record.
type Counter struct {
	n     atomic.Int64
	pulse *pulse
}

// Add adds n. It counts as activity of the attempt.
func (c *Counter) Add(n int64) {
	c.n.Add(n)
	c.pulse.beat()
}

// Value returns this attempt's sum.
func (c *Counter) Value() int64 { return c.n.Load() }

// Counter returns the counter of this name and makes it at first use. A counter beyond the
// job's [wire.CounterLimits] fails the attempt and its job.
func (t *Task) Counter(group, name string) *Counter {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.counters[counterName{group, name}]
	if c != nil {
		return c
	}
	c = &Counter{pulse: &t.pulse}
	if t.counterErr != nil {
		return c // not reported
	}
	if t.limits == nil {
		var properties map[string]string
		if t.Plan != nil {
			properties = t.Plan.Properties
		}
		limits := wire.CounterLimitsOf(properties)
		t.limits, t.counterNames, t.counters = &limits, make(wire.Counters), make(map[counterName]*Counter)
	}
	if err := t.limits.Admit(t.counterNames, group, name); err != nil {
		t.counterErr = Fatal(err)
		if t.cancel != nil {
			t.cancel(t.counterErr)
		}
		return c
	}
	t.counterNames.Add(group, name, 0)
	t.counters[counterName{group, name}] = c
	return c
}

// counterError returns the error of a refused counter. The attempt must then fail, even if
// its code returns no error.
func (t *Task) counterError() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counterErr
}

func (t *Task) sums() wire.Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(wire.Counters)
	for id, c := range t.counters {
		if n := c.Value(); n != 0 {
			all.Add(id.group, id.name, n)
		}
	}
	return all
}

// Status sets a text about the attempt's current work. The attempt's error includes it. The
// call counts as activity.
func (t *Task) Status(text string) {
	t.mu.Lock()
	t.status = text
	t.mu.Unlock()
	t.pulse.beat()
}

func (t *Task) lastStatus() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.status
}

// Property returns the value of a job's property, "" if it is not set.
func (t *Task) Property(name string) string {
	if t.Plan == nil {
		return ""
	}
	return t.Plan.Properties[name]
}

// Dir returns the attempt's working directory, which is not that of the process if several attempts share one.
func (t *Task) Dir() string { return t.work }

// OutputDir returns the URL of the directory into which the attempt writes; "" if it has no output of its own.
func (t *Task) OutputDir() string {
	if t.outputs == nil {
		return ""
	}
	return t.outputs.dir
}

// Alive signals activity, as of a child process.
func (t *Task) Alive() { t.pulse.beat() }

// File returns the local path of a side file declared in the job. A single local file is
// used in place. Otherwise the files are copied into the attempt's directory at first use.
func (t *Task) File(name string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if path, ok := t.files[name]; ok {
		return path, nil
	}
	path, err := t.fetch(name)
	if err != nil {
		return "", fmt.Errorf("side file %q: %w", name, err)
	}
	if t.files == nil {
		t.files = make(map[string]string)
	}
	t.files[name] = path
	return path, nil
}

func (t *Task) fetch(name string) (string, error) {
	files, err := t.openSideFiles(name)
	if err != nil {
		return "", err
	}
	if len(files) == 1 {
		if path, ok := localFile(files[0].Name); ok {
			return path, nil
		}
	}
	path := filepath.Join(t.work, name)
	return path, t.copy(path, files...)
}

// checkDeclared returns an error if the job has no such side file.
func (t *Task) checkDeclared(name string) error {
	if t.Plan == nil || t.Plan.Files[name] == "" && t.Plan.SideResult(name) == 0 {
		if t.Plan != nil && t.Plan.Files[otherSide(name)] != "" {
			return Fatal(errors.New("directories and archives of the job are not its files: see Job.Archives and Job.Files"))
		}
		return Fatal(errors.New("not declared in the job"))
	}
	if base := strings.TrimSuffix(name, "/"); base != filepath.Base(base) || !filepath.IsLocal(base) {
		return Fatal(errors.New("its name is not a file name"))
	}
	return nil
}

func localFile(url string) (path string, ok bool) {
	if path, ok = strings.CutPrefix(url, "file://"); !ok {
		return "", false
	}
	info, err := os.Stat(path)
	return path, err == nil && !info.IsDir()
}

// SidePart is one of the files of a side file.
type SidePart struct {
	URL  string // of the file
	Path string // for reading: the file itself if it is local, else a copy
}

// Parts returns the files of a side file declared in the job, in order. It copies files
// that are not local into the attempt's directory, at first use.
func (t *Task) Parts(name string) ([]SidePart, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if parts, ok := t.parts[name]; ok {
		return parts, nil
	}
	parts, err := t.fetchParts(name)
	if err != nil {
		return nil, fmt.Errorf("side file %q: %w", name, err)
	}
	if t.parts == nil {
		t.parts = make(map[string][]SidePart)
	}
	t.parts[name] = parts
	return parts, nil
}

func (t *Task) fetchParts(name string) ([]SidePart, error) {
	files, err := t.openSideFiles(name)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(t.work, "parts-")
	if err != nil {
		return nil, err
	}
	parts := make([]SidePart, len(files))
	for i, file := range files {
		path, ok := localFile(file.Name)
		if !ok {
			path = filepath.Join(dir, fmt.Sprint(i))
			if err := t.copy(path, file); err != nil {
				return nil, err
			}
		}
		parts[i] = SidePart{URL: file.Name, Path: path}
	}
	return parts, nil
}

// copy writes the concatenated contents of files to a local file.
func (t *Task) copy(path string, files ...dfs.Info) error {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err = t.append(to, file.Name); err != nil {
			break
		}
	}
	return errors.Join(err, to.Close())
}

func (t *Task) append(to io.Writer, name string) error {
	in, err := t.fs.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(to, &activeReader{in, &t.pulse})
	return err
}

// activeReader signals activity with every read.
type activeReader struct {
	io.Reader
	pulse *pulse
}

func (b *activeReader) Read(p []byte) (int, error) {
	b.pulse.beat()
	return b.Reader.Read(p)
}

// Output returns an output of the attempt by name, "" for the main one. The maps of a job with reduces
// have no main one.
func (t *Task) Output(name string) (*Output, error) {
	if err := t.checkOutput(name); err != nil {
		return nil, err
	}
	return t.outputs.open(name)
}

// Container returns an output in a format with structure. It calls begin when it has made the file, and
// end, which begin returns, after the last record. Records do not pass through [Output.Write], but are
// counted by [Output.Counted].
func (t *Task) Container(name, suffix string, begin func(io.Writer) (end func() error, err error)) (*Output, error) {
	if err := t.checkOutput(name); err != nil {
		return nil, err
	}
	return t.outputs.begin(name, suffix, func(out *Output) (err error) {
		out.end, err = begin(out.file)
		return err
	})
}

// CloseOutput completes an output before the attempt's end, to free its memory. Nothing can be written to
// it afterwards.
func (t *Task) CloseOutput(name string) error {
	if t.outputs == nil || t.outputs.files[name] == nil {
		return nil
	}
	return t.outputs.files[name].close()
}

// checkOutput refuses outputs that the job does not declare. A minus ends the name of one with several files.
func (t *Task) checkOutput(name string) error {
	if t.outputs == nil {
		return Fatal(fmt.Errorf("output %q: the job declares no outputs, so a %s has no files of its own when the job has reduces: list the output in Job.Outputs", name, t.ID.Task.Kind))
	}
	if name == "" && t.outputs.ofMap {
		return Fatal(errors.New("the main output of a map goes to reduces: it has no file; write to an output of Job.Outputs"))
	}
	declared, _, _ := strings.Cut(name, "-")
	if name != "" && (t.Plan == nil || !slices.Contains(t.Plan.Outputs, name) && !slices.Contains(t.Plan.Outputs, declared)) {
		return Fatal(fmt.Errorf("output %q: not declared in the job", name))
	}
	return nil
}
