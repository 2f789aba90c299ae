package tasktracker

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
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

	makingName    = "making"   // what is being written
	damagedSuffix = ".damaged" // what was put aside
)

// tokens are those of the jobs that have something here: what is asked for with
// another token, or without one, is not given. They are kept for a later process,
// which may have outputs and logs to serve, each in a file of its own.
//
// It may be used by any goroutine, but keep and forget by one, which calls keep for
// each token that is news: then files follow what is known. Whoever finds that nothing
// is left of a job may be late; so a token is forgotten only if it was not learned
// again since it was looked for.
type tokens struct {
	dir string // empty: nothing is kept

	mu    sync.Mutex
	of    map[wire.JobID]jobToken
	count int // of those that were learned
}

type jobToken struct {
	text    string
	ended   bool // the job has: nothing but its logs is left
	learned int  // by count: when it was last; 0: by an earlier process
	unkept  bool // it could not be written: to be tried again when it is learned again
}

// openTokens reads what an earlier process has kept. A file that cannot be used costs
// its own job what it has here, and no other: it is put aside, until the next start.
func openTokens(dir string, log *slog.Logger) (*tokens, error) {
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
		if err != nil {
			if e.Name() == makingName || strings.HasSuffix(e.Name(), damagedSuffix) {
				_ = os.RemoveAll(name)
			}
			continue
		}
		text, err := readToken(name)
		if err == nil {
			t.of[job] = jobToken{text: text}
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

// learn takes a job's token in; news says that it is to be kept.
func (t *tokens) learn(job wire.JobID, token string) (news bool) {
	if !isToken(token) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known := t.of[job]
	t.count++
	t.of[job] = jobToken{text: token, learned: t.count}
	return known.text != token || known.unkept
}

// keep writes a job's token for a later process, unless it is forgotten by now. One that
// cannot be written is news again.
func (t *tokens) keep(job wire.JobID) error {
	token := t.get(job)
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

func (t *tokens) write(job wire.JobID, token string) error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	making := filepath.Join(t.dir, makingName)
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

// end leaves a job's token for its logs alone, until it is learned again. It gives
// when that was last.
func (t *tokens) end(job wire.JobID) (learned int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, ok := t.of[job]
	if ok {
		known.ended = true
		t.of[job] = known
	}
	return known.learned
}

// forget removes a job's token that was learned then, and not since.
func (t *tokens) forget(job wire.JobID, learned int) error {
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

// known tells of all jobs that have a token when it was learned.
func (t *tokens) known() map[wire.JobID]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	jobs := make(map[wire.JobID]int, len(t.of))
	for job, token := range t.of {
		jobs[job] = token.learned
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
	job, token := jobOf(m)
	if !l.tokens.learn(job, token) {
		return
	}
	l.chores.Put(func() {
		if err := l.tokens.keep(job); err != nil {
			l.cfg.Logger.Warn("what a job leaves here will not be served by a later process", "job", job, "error", err)
		}
	})
}

// jobOf is the job that a message begins or ends here, if it does, and its token.
func jobOf(m wire.Message) (job wire.JobID, token string) {
	switch m := m.(type) {
	case *wire.Launch:
		return m.Attempt.Task.Job, m.Token
	case *wire.SetHome:
		return m.Job, m.Token
	case *wire.DropJob:
		return m.Job, ""
	}
	return wire.JobID{}, ""
}

// dropped lets the token of a job go that is not here any more, but for its logs.
func (l *loop) dropped(job wire.JobID) {
	if l.core.Has(job) {
		return // it was an older leader's wish
	}
	learned := l.tokens.end(job)
	l.chores.Put(func() {
		if l.cfg.Fresh || !exists(filepath.Join(l.cfg.Dir, core.LogsDir, job.String())) {
			l.forgetToken(job, learned)
		}
	})
}

func (l *loop) forgetToken(job wire.JobID, learned int) {
	if err := l.tokens.forget(job, learned); err != nil {
		l.cfg.Logger.Warn("cannot remove a token", "job", job, "error", err)
	}
}

// sweepTokens forgets those of the tokens known that are of jobs of which nothing is
// here: no logs, no outputs, and nothing that runs. Which jobs are live was asked
// after which tokens are known.
func (l *loop) sweepTokens(known map[wire.JobID]int, live map[wire.JobID]bool) {
	for job, learned := range known {
		if !live[job] && !l.leaves(job) {
			l.chores.Put(func() { l.forgetToken(job, learned) })
		}
	}
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
