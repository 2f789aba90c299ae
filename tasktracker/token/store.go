// Package token keeps the tokens of jobs. Requests for a job's map outputs need its token,
// requests for its logs a token that the leader derives from it for one user (wire.LogToken). The leader sends the token with the job's first message here. A later process of
// the tracker, which may serve outputs and logs too, reads it from a file.
//
// # Files
//
// Below [Dir] in the tracker's directory, readable by the tracker's user alone:
//
//	<job>          the token and a newline; at most 256 printable characters
//	<job>.damaged  an unreadable file, until the next start
//	making         a file in progress
//
// # Concurrency
//
// Any goroutine may use a Store. Save and Forget use the disk. One goroutine calls them, and
// calls Save for each new token, so that the files match the tokens. Each Set gives a token
// a new version. Forget takes the version that EndJob or Versions returned, and does nothing
// if the token was set again since then.
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

// Dir is the directory of tokens in a tracker's directory.
const Dir = "tokens"

const (
	maxToken = 256 // bytes

	partName      = "making"   // file in progress
	damagedSuffix = ".damaged" // unreadable file
)

// Store has the tokens of jobs with files here. Make one with [Open].
type Store struct {
	dir string // empty: tokens are not written

	mu          sync.Mutex
	tokens      map[wire.JobID]entry
	lastVersion int // number of Set calls
}

type entry struct {
	text      string
	ended     bool // the job has ended: only its logs are here
	version   int  // number of its last Set; 0: an earlier process set it
	unwritten bool // it could not be written: Save must try again
}

// Open reads the tokens of an earlier process. It renames an unreadable file: outputs and
// logs of that job cannot be served here, and it does not affect other jobs.
func Open(dir string, log *slog.Logger) (*Store, error) {
	t := &Store{dir: dir, tokens: make(map[wire.JobID]entry)}
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
			if e.Name() == partName || strings.HasSuffix(e.Name(), damagedSuffix) {
				_ = os.RemoveAll(name)
			}
			continue
		}
		text, err := readToken(name)
		if err == nil {
			t.tokens[job] = entry{text: text}
			continue
		}
		err = errors.Join(err, os.Rename(name, name+damagedSuffix))
		log.Error("a job's token cannot be read: its outputs and logs here cannot be served", "job", job, "error", err)
	}
	return t, nil
}

// readToken reads a token's file, which must be complete.
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

// isToken reports whether a text can be a token. It refuses the text of a torn write.
func isToken(text string) bool {
	return text != "" && len(text) <= maxToken && strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// Set stores a job's token. If changed is true, Save must write it.
func (t *Store) Set(job wire.JobID, token string) (changed bool) {
	if !isToken(token) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	previous := t.tokens[job]
	t.lastVersion++
	t.tokens[job] = entry{text: token, version: t.lastVersion}
	return previous.text != token || previous.unwritten
}

// Save writes a job's token for a later process, unless it was forgotten. After a failure
// the next Set returns true again.
func (t *Store) Save(job wire.JobID) error {
	token := t.Get(job)
	if t.dir == "" || token == "" {
		return nil
	}
	err := t.write(job, token)
	t.mu.Lock()
	defer t.mu.Unlock()
	if current, ok := t.tokens[job]; ok && current.text == token {
		current.unwritten = err != nil
		t.tokens[job] = current
	}
	return err
}

func (t *Store) write(job wire.JobID, token string) error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	making := filepath.Join(t.dir, partName)
	if err := os.WriteFile(making, []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(making, filepath.Join(t.dir, job.String()))
}

// Get returns a job's token; empty: it has none.
func (t *Store) Get(job wire.JobID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tokens[job].text
}

// EndJob restricts a job's token to its logs until it is set again. It returns the version
// of the token.
func (t *Store) EndJob(job wire.JobID) (version int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	current, ok := t.tokens[job]
	if ok {
		current.ended = true
		t.tokens[job] = current
	}
	return current.version
}

// Forget removes a job's token, unless it has a newer version.
func (t *Store) Forget(job wire.JobID, version int) error {
	t.mu.Lock()
	current, ok := t.tokens[job]
	if ok && current.version == version {
		delete(t.tokens, job)
	}
	t.mu.Unlock()
	if !ok || current.version != version || t.dir == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(t.dir, job.String())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Versions returns the jobs with a token, and the version of each token.
func (t *Store) Versions() map[wire.JobID]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	jobs := make(map[wire.JobID]int, len(t.tokens))
	for job, token := range t.tokens {
		jobs[job] = token.version
	}
	return jobs
}

// Use is the purpose of a request.
type Use int

// After the end of a job its token is valid for logs, but not for map outputs.
const (
	ForShuffle Use = iota
	ForLogs
)

// Check returns an error if a token is not valid for a job's map outputs, or for its logs in the
// hands of this user: see wire.LogToken. Its duration does not depend on the token.
func (t *Store) Check(job wire.JobID, presented string, use Use, user string) error {
	t.mu.Lock()
	current, ok := t.tokens[job]
	t.mu.Unlock()
	want := current.text
	if use == ForLogs {
		want = wire.LogToken(want, user)
	}
	switch same := subtle.ConstantTimeCompare([]byte(want), []byte(presented)) == 1; {
	case presented == "":
		return ErrNoToken
	case !ok || !same:
		return fmt.Errorf("the token does not belong to %v, or not to this use and user", job)
	case current.ended && use == ForShuffle:
		return fmt.Errorf("%v has ended: its token is valid only for its logs", job)
	}
	return nil
}

// ErrNoToken reports a request without a token.
var ErrNoToken = errors.New("the request has no job token")
