// Package token keeps the tokens of jobs: what of a job is asked for with another token,
// or without one, is not given. The leader sends a job's token with what begins the job
// here; a later process of the tracker, which may have outputs and logs to serve, finds
// it in a file.
//
// # Files
//
// Below [Dir] in the tracker's directory, readable by the tracker's user alone:
//
//	<job>          the token and a newline; 256 printable characters at most
//	<job>.damaged  one that could not be read, until the next start
//	making         one that is being written
//
// # Concurrency
//
// Any goroutine may use a Store. Keep and Forget, which use the disk, are for one, which
// calls Keep for each token that is news: then files follow what is known. A search for
// jobs of which nothing is left may end late. So Forget takes the number that End or
// Known gave, and does nothing if the token was learned again since.
package token

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/quernmr/quern/wire"
)

// Dir is the directory that trackers keep tokens in, below their own.
const Dir = "tokens"

const (
	maxToken = 256 // bytes

	makingName    = "making"   // what is being written
	damagedSuffix = ".damaged" // what was put aside
)

// Store has the tokens of the jobs that have something here. Make one with [Open].
type Store struct {
	dir string // empty: nothing is kept

	mu    sync.Mutex
	of    map[wire.JobID]entry
	count int // of those that were learned
}

type entry struct {
	text    string
	ended   bool // the job has: nothing but its logs is left
	learned int  // by count: when it was last; 0: by an earlier process
	unkept  bool // it could not be written: to be tried again when it is learned again
}

// Open reads what an earlier process has kept. A file that cannot be used costs
// its own job what it has here, and no other: it is put aside, until the next start.
func Open(dir string, log *slog.Logger) (*Store, error) {
	t := &Store{dir: dir, of: make(map[wire.JobID]entry)}
	if dir == "" {
		return t, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		job, err := wire.ParseJobID(e.Name())
		if err != nil {
			if e.Name() == makingName || strings.HasSuffix(e.Name(), damagedSuffix) {
				_ = os.RemoveAll(name)
			}
			continue
		}
		text, err := readToken(name)
		if err == nil {
			t.of[job] = entry{text: text}
			continue
		}
		err = errors.Join(err, os.Rename(name, name+damagedSuffix))
		log.Error("a job's token cannot be read: its outputs and logs here are served to nobody", "job", job, "error", err)
	}
	return t, nil
}

// readToken reads a token's file, which must be whole.
func readToken(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken+2))
	if err != nil {
		return "", err
	}
	token, whole := strings.CutSuffix(string(text), "\n")
	if !whole || !isToken(token) {
		return "", fmt.Errorf("%s is damaged", name)
	}
	return token, nil
}

// isToken says whether a text can be a token: what is torn or was never written does
// not look like one.
func isToken(text string) bool {
	return text != "" && len(text) <= maxToken && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// Learn takes a job's token in; news says that it is to be kept.
func (t *Store) Learn(job wire.JobID, token string) (news bool) {
	if !isToken(token) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.of[job]
	t.count++
	t.of[job] = entry{text: token, learned: t.count}
	return known.text != token || known.unkept
}

// Keep writes a job's token for a later process, unless it is forgotten by now. One that
// cannot be written is news again.
func (t *Store) Keep(job wire.JobID) error {
	token := t.Get(job)
	if t.dir == "" || token == "" {
		return nil
	}
	err := t.write(job, token)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.of[job]; ok && known.text == token {
		known.unkept = err != nil
		t.of[job] = known
	}
	return err
}

func (t *Store) write(job wire.JobID, token string) error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	making := filepath.Join(t.dir, makingName)
	if err := os.WriteFile(making, []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(making, filepath.Join(t.dir, job.String()))
}

// Get is a job's token; empty: none is known.
func (t *Store) Get(job wire.JobID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[job].text
}

// End leaves a job's token for its logs alone, until it is learned again. It gives
// when that was last.
func (t *Store) End(job wire.JobID) (learned int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.of[job]
	if ok {
		known.ended = true
		t.of[job] = known
	}
	return known.learned
}

// Forget removes a job's token that was learned then, and not since.
func (t *Store) Forget(job wire.JobID, learned int) error {
	t.mu.Lock()
	known, ok := t.of[job]
	if ok && known.learned == learned {
		delete(t.of, job)
	}
	t.mu.Unlock()
	if !ok || known.learned != learned || t.dir == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(t.dir, job.String())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Known tells of all jobs that have a token when it was learned.
func (t *Store) Known() map[wire.JobID]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	jobs := make(map[wire.JobID]int, len(t.of))
	for job, token := range t.of {
		jobs[job] = token.learned
	}
	return jobs
}

// Use is what a token is asked for.
type Use int

// Of an ended job, logs are given and map outputs are not.
const (
	ForShuffle Use = iota
	ForLogs
)

// Admits says why what a request brings along is not what a job's map outputs, or
// its logs, are given for. How long that takes tells nothing of the token.
func (t *Store) Admits(job wire.JobID, brought string, use Use) error {
	t.mu.Lock()
	known, ok := t.of[job]
	t.mu.Unlock()
	switch same := subtle.ConstantTimeCompare([]byte(known.text), []byte(brought)) == 1; {
	case brought == "":
		return ErrNone
	case !ok || !same:
		return fmt.Errorf("the token is not that of %v", job)
	case known.ended && use == ForShuffle:
		return fmt.Errorf("%v has ended: its token is for its logs alone", job)
	}
	return nil
}

// ErrNone reports a request without a token.
var ErrNone = errors.New("it comes without the job's token")
