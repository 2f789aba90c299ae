package driver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

const (
	programName   = "program"
	begunSuffix   = ".begun"
	droppedSuffix = ".dropped"
	keyLength     = 32         // digits of a step's key
	successName   = "_SUCCESS" // in the directory of a job that has succeeded
)

// session is a directory with the results of steps.
type session struct {
	fs   dfs.FS
	dir  string // URL
	name string // empty: temporary
	self string // this process, as the holder of a session with a name
	note func(string)
	lost func(error) // another driver has taken the session over

	unused bool // it has no steps, and its driver must not begin one

	stop  context.CancelFunc // ends the renewal of the lease
	loops sync.WaitGroup

	mu    sync.Mutex
	names map[string]string // name of the record, by the directory of its result
}

// record is the file about a step that has ended.
type record struct {
	Definition string
	Params     json.RawMessage
	Dir        string
	Format     string
	Counters   wire.Counters
	Job        string
}

// begun is the file about a step that was begun.
type begun struct {
	Key    string // of the submission
	Result string // directory for the result in the session
	Output string // directory that the job writes
}

func (s *session) make() error {
	if err := s.fs.MkdirAll(dfs.Dir(s.dir)); err != nil {
		return fmt.Errorf("make session: %w", err)
	}
	for _, dir := range []string{s.dir, dfs.Join(s.dir, wire.SessionResults)} {
		if err := s.fs.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make session: %w", err)
		}
	}
	s.names = make(map[string]string)
	s.stop = func() {}
	return nil
}

// remove removes the session, or fails with errTaken if another driver has it. One with a name is renamed first, because
// a driver that waits for it makes it again.
func (s *session) remove() error {
	dir := s.dir
	if s.name != "" {
		if err := s.check(s.dir); err != nil {
			return err
		}
		dir = s.dir + "-" + rand.Text()
		if err := s.fs.RenameDir(s.dir, dir); err != nil {
			return err
		}
		if err := s.check(dir); err != nil { // taken over after the first check
			if back := s.fs.RenameDir(dir, s.dir); back != nil { // not errTaken, which Close may leave out
				return fmt.Errorf("%v; rename its directory back: %w", err, back)
			}
			return err
		}
	}
	return s.fs.RemoveAll(dir)
}

// enter checks that this program has made the session, or makes it ours.
func (s *session) enter(ctx context.Context, program string) error {
	if err := s.hold(ctx); err != nil {
		return fmt.Errorf("enter session %s: %w", s.name, err)
	}
	name := dfs.Join(s.dir, programName)
	made, err := readFile(s.fs, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = writeFile(s.fs, name, []byte(program))
		made = []byte(program)
	}
	if err == nil && string(made) != program {
		err = fmt.Errorf("session %s was made by another build of the program, and its results may differ: choose another name with -session, or remove %s", s.name, s.dir)
	}
	if err != nil {
		s.leave()
		return errors.Join(err, s.release())
	}
	return nil
}

// recorded returns the result of a step that has ended, or nil. Without the result's files there is none.
func (s *session) recorded(name string) (*Result, error) {
	if s.name == "" {
		return nil, nil
	}
	file := dfs.Join(s.dir, name)
	text, err := readFile(s.fs, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", s.name, err)
	}
	var r record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("session %s: read %s: %w; remove it to run the step again", s.name, file, err)
	}
	_, err = s.fs.Stat(dfs.Join(r.Dir, successName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = s.fs.Stat(file + droppedSuffix); errors.Is(err, fs.ErrNotExist) { // removed by others
			return nil, s.forget(file)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", s.name, err)
	}
	s.remember(r.Dir, name)
	s.note(fmt.Sprintf("%s %s: its result is in session %s", r.Job, r.Definition, s.name))
	return &Result{Dir: r.Dir, Format: r.Format, Counters: r.Counters, Job: r.Job}, nil
}

// begin writes that a step begins.
func (s *session) begin(name string, b *begun) error {
	if s.name == "" {
		return nil
	}
	file := dfs.Join(s.dir, name+begunSuffix)
	text, err := json.Marshal(b)
	if err == nil {
		err = s.fs.Remove(file) // of an earlier process: its jobs did not succeed
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = writeFile(s.fs, file, text)
		}
	}
	if err != nil {
		return fmt.Errorf("session %s: begin a step: %w", s.name, err)
	}
	return nil
}

// begun returns what an earlier process began for a step, or nil.
func (s *session) begun(name string) (*begun, error) {
	if s.name == "" {
		return nil, nil
	}
	file := dfs.Join(s.dir, name+begunSuffix)
	text, err := readFile(s.fs, file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	b := new(begun)
	if err == nil {
		err = json.Unmarshal(text, b)
	}
	if err != nil {
		return nil, fmt.Errorf("session %s: read %s: %w", s.name, file, err)
	}
	return b, nil
}

// steps lists the files about steps: records, and those of steps that were begun.
func (s *session) steps() ([]string, error) {
	files, err := s.fs.List(s.dir)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", s.name, err)
	}
	var all []string
	for _, file := range files {
		step := strings.TrimSuffix(dfs.Base(file.Name), begunSuffix)
		if key, _, _ := strings.Cut(step, "-"); !file.Dir && len(key) == keyLength && !strings.Contains(step, ".") {
			all = append(all, file.Name)
		}
	}
	return all, nil
}

// writes reports whether one of these steps has written to a directory or below, or was begun to do so.
func (s *session) writes(steps []string, output string) (bool, error) {
	for _, name := range steps {
		var at struct{ Dir, Output string } // of a record, or of a step that was begun
		text, err := readFile(s.fs, name)
		if err == nil {
			err = json.Unmarshal(text, &at)
		}
		if err != nil {
			return false, fmt.Errorf("session %s: read %s: %w", s.name, name, err)
		}
		if within(at.Dir, output) || within(at.Output, output) {
			return true, nil
		}
	}
	return false, nil
}

// within reports whether a directory is another one, or below it.
func within(dir, other string) bool {
	return other != "" && (dir == other || strings.HasPrefix(dir, strings.TrimSuffix(other, "/")+"/"))
}

// forget removes the record of a step, and what is known of its jobs.
func (s *session) forget(file string) error {
	if err := s.fs.Remove(file + begunSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.fs.Remove(file)
}

func (s *session) remember(dir, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[dir] = name
}

func (s *session) record(name, definition string, params []byte, r *Result) error {
	s.remember(r.Dir, name)
	if s.name == "" {
		return nil
	}
	text, err := json.Marshal(record{definition, params, r.Dir, r.Format, r.Counters, r.Job})
	if err == nil {
		err = writeFile(s.fs, dfs.Join(s.dir, name), text)
	}
	if err != nil {
		return fmt.Errorf("session %s: record a step: %w", s.name, err)
	}
	return nil
}

// owns reports whether a directory is a result in this session. Jobs could replace a directory around it by a link.
func (s *session) owns(dir string) bool {
	name, ok := strings.CutPrefix(dir, dfs.Join(s.dir, wire.SessionResults)+"/")
	return ok && strings.Trim(name, ".") != "" && !strings.Contains(name, "/")
}

// drop removes a result. A named session keeps its record: a driver that starts again does not need the
// step again, since the steps that read the result have ended.
func (s *session) drop(dir string) error {
	s.mu.Lock()
	name := s.names[dir]
	s.mu.Unlock()
	if s.name != "" && name != "" {
		err := writeFile(s.fs, dfs.Join(s.dir, name)+droppedSuffix, nil)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("drop result: %w", err)
		}
	}
	if err := s.fs.RemoveAll(dir); err != nil {
		return fmt.Errorf("drop result: %w", err)
	}
	return nil
}

func readFile(files dfs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

// writeFile writes a file that appears completely, or not at all.
func writeFile(files dfs.FS, name string, content []byte) error {
	temporary := name + ".making"
	if err := files.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	w, err := files.Create(temporary)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := files.RenameFile(temporary, name); err != nil {
		return errors.Join(err, files.Remove(temporary))
	}
	return files.SyncDir(dfs.Dir(name))
}
