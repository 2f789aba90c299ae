package tasktracker

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

const (
	tokensName = "tokens"
	maxToken   = 256 // bytes
)

// tokens are those of the jobs that have something here: what is asked for with
// another token, or without one, is not given. They are kept for a later process,
// which may have outputs and logs to serve, each in a file of its own.
//
// It may be used by any goroutine.
type tokens struct {
	dir string // empty: nothing is kept

	mu sync.Mutex
	of map[wire.JobID]jobToken
}

type jobToken struct {
	text  string
	ended bool // the job has: nothing but its logs is left
}

// openTokens reads what an earlier process has kept.
func openTokens(dir string) (*tokens, error) {
	t := &tokens{dir: dir, of: make(map[wire.JobID]jobToken)}
	if dir == "" {
		return t, nil
	}
	entries, err := readDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		job, err := wire.ParseJobID(e.Name())
		if err != nil { // what was being written
			_ = os.Remove(name)
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if token := strings.TrimSpace(string(text)); token != "" && len(token) <= maxToken {
			t.of[job] = jobToken{text: token}
		}
	}
	return t, nil
}

// learn takes a job's token in; news says that it is to be kept.
func (t *tokens) learn(job wire.JobID, token string) (news bool) {
	if token == "" || len(token) > maxToken {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.of[job]
	if known.text == token {
		return false
	}
	t.of[job] = jobToken{text: token}
	return true
}

// keep writes a job's token for a later process, unless it is forgotten by now.
func (t *tokens) keep(job wire.JobID) error {
	token := t.get(job)
	if t.dir == "" || token == "" {
		return nil
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	making := filepath.Join(t.dir, "making")
	if err := os.WriteFile(making, []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(making, filepath.Join(t.dir, job.String()))
}

// get is a job's token; empty: none is known.
func (t *tokens) get(job wire.JobID) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[job].text
}

// end leaves a job's token for its logs alone.
func (t *tokens) end(job wire.JobID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.of[job]; ok {
		known.ended = true
		t.of[job] = known
	}
}

// forget removes a job's token.
func (t *tokens) forget(job wire.JobID) error {
	t.mu.Lock()
	delete(t.of, job)
	t.mu.Unlock()
	if t.dir == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(t.dir, job.String())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// jobs lists those that have a token.
func (t *tokens) jobs() []wire.JobID {
	t.mu.Lock()
	defer t.mu.Unlock()
	jobs := make([]wire.JobID, 0, len(t.of))
	for job := range t.of {
		jobs = append(jobs, job)
	}
	return jobs
}

// What tokens are asked for.
const (
	forShuffle = iota
	forLogs
)

// admits says why what a request brings along is not what a job's map outputs, or
// its logs, are given for. How long that takes tells nothing of the token.
func (t *tokens) admits(job wire.JobID, brought string, use int) error {
	t.mu.Lock()
	known, ok := t.of[job]
	t.mu.Unlock()
	switch same := subtle.ConstantTimeCompare([]byte(known.text), []byte(brought)) == 1; {
	case brought == "":
		return errNoToken
	case !ok || !same:
		return fmt.Errorf("the token is not that of %v", job)
	case known.ended && use == forShuffle:
		return fmt.Errorf("%v has ended: its token is for its logs alone", job)
	}
	return nil
}

var errNoToken = errors.New("it comes without the job's token")

// guard serves requests with the right token of the job in their path, by peers of
// a role where peers have to prove one. It refuses and logs the others.
func (l *loop) guard(role identity.Role, use int, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, known := identity.PeerOf(r.TLS)
		refuse := func(status int, err error) {
			l.cfg.Logger.Warn("a request is refused", "peer", peer, "addr", r.RemoteAddr, "path", r.URL.Path, "reason", err)
			http.Error(w, err.Error(), status)
		}
		if l.cfg.Serve != nil && (!known || peer.Role != role) {
			refuse(http.StatusForbidden, fmt.Errorf("this is not for a %s", peer.Role))
			return
		}
		job, err := wire.ParseJobID(r.PathValue("job"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		brought, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		switch err := l.tokens.admits(job, brought, use); {
		case errors.Is(err, errNoToken):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(http.StatusUnauthorized, err)
		case err != nil:
			refuse(http.StatusForbidden, err)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// learn takes the token in that comes with a message of the leader's.
func (l *loop) learn(m wire.Message) {
	var job wire.JobID
	var token string
	switch m := m.(type) {
	case *wire.Launch:
		job, token = m.Attempt.Task.Job, m.Token
	case *wire.SetHome:
		job, token = m.Job, m.Token
	}
	if !l.tokens.learn(job, token) {
		return
	}
	l.chores.Put(func() {
		if err := l.tokens.keep(job); err != nil {
			l.cfg.Logger.Warn("what a job leaves here will not be served by a later process", "job", job, "error", err)
		}
	})
}

// dropped lets the token of a job go that is not here any more, but for its logs.
func (l *loop) dropped(job wire.JobID) {
	if l.core.Has(job) {
		return // it was an older leader's wish
	}
	l.tokens.end(job)
	l.chores.Put(func() {
		if l.cfg.Fresh || !exists(filepath.Join(l.cfg.Dir, core.LogsDir, job.String())) {
			l.forgetToken(job)
		}
	})
}

func (l *loop) forgetToken(job wire.JobID) {
	if err := l.tokens.forget(job); err != nil {
		l.cfg.Logger.Warn("cannot remove a token", "job", job, "error", err)
	}
}

// sweepTokens forgets the tokens of jobs of which nothing is here: no logs, no
// outputs, and nothing that runs.
func (l *loop) sweepTokens() {
	var idle []wire.JobID
	for _, job := range l.tokens.jobs() {
		if !l.leaves(job) {
			idle = append(idle, job)
		}
	}
	l.post(func() {
		for _, job := range idle {
			if !l.core.Has(job) {
				l.chores.Put(func() { l.forgetToken(job) })
			}
		}
	})
}

// leaves says whether files of a job are here.
func (l *loop) leaves(job wire.JobID) bool {
	if exists(filepath.Join(l.cfg.Dir, core.LogsDir, job.String())) {
		return true
	}
	for _, disk := range l.cfg.Disks {
		if exists(filepath.Join(disk, core.JobsDir, job.String())) {
			return true
		}
	}
	return false
}

// exists says whether a file may be there: a disk that fails says nothing.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}
