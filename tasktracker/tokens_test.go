package tasktracker

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/token"
	"github.com/quernmr/quern/wire"
)

// logBuffer collects log lines.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *logBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *logBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// get sends a request with a token; empty: without one.
func get(t *testing.T, url, token string) (status int, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// waitProcessed waits until the tracker has processed all earlier messages. The tracker answers
// the kill of an unknown attempt, and stores nothing for it.
func (l *leader) waitProcessed() {
	l.t.Helper()
	l.lastAttempt++
	id := wire.AttemptID{Task: wire.TaskID{Job: jobN(100), Kind: wire.Map}, N: 1000 + l.lastAttempt}
	l.send(&wire.Kill{Epoch: 1, Attempt: id})
	l.final(id, wire.AttemptKilled)
}

// TestTokensAreChecked: requests for a job's outputs and logs need its token. After the
// job's end the outputs are refused. Refusals are logged.
func TestTokensAreChecked(t *testing.T) {
	log := new(logBuffer)
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(log, nil))})
	l.connect(1)
	o := l.succeed(wire.Map, 0, doMap).Output
	l.send(&wire.SetHome{Epoch: 1, Job: jobN(2)})
	l.waitProcessed()
	base := "http://" + l.addr
	id := wire.AttemptID{Task: wire.TaskID{Job: job1, Kind: wire.Map}, N: o.Attempt}
	output := shuffle.URL(base, job1, 0, o.Attempt, 0)
	logs := fmt.Sprintf("%s/logs/%v/%v/stderr", base, job1, id)
	for _, c := range []struct {
		url, token string
		ended      bool
		status     int
		want       string
	}{
		{output, tokenOf(job1), false, 200, ""},
		{output, "", false, 401, "the request has no job token"},
		{output, tokenOf(job1) + "x", false, 403, "does not belong to job_1_0001"},
		{output, tokenOf(jobN(2)), false, 403, "does not belong to job_1_0001"},
		{shuffle.URL(base, jobN(2), 0, o.Attempt, 0), tokenOf(job1), false, 403, "does not belong to job_1_0002"},
		{shuffle.URL(base, jobN(9), 0, 1000, 0), tokenOf(jobN(9)), false, 403, "does not belong to job_1_0009"},
		{shuffle.URL(base, job1, 1, 1000, 0), tokenOf(job1), false, 404, ""},
		{base + "/shuffle/nonsense/0/1/0", tokenOf(job1), false, 400, "not an id"},
		{base + "/shuffle/..%2f/0/1/0", tokenOf(job1), false, 400, "not an id"},
		{logs, wire.LogToken(tokenOf(job1), ""), false, 200, ""},
		{logs, tokenOf(job1), false, 403, "does not belong to job_1_0001"},
		{logs, wire.LogToken(tokenOf(job1), "bob"), false, 403, "does not belong to job_1_0001"},
		{output, wire.LogToken(tokenOf(job1), ""), false, 403, "does not belong to job_1_0001"},
		{logs, "", false, 401, "the request has no job token"},
		{logs, wire.LogToken(tokenOf(jobN(2)), ""), false, 403, "does not belong to job_1_0001"},
		{output, tokenOf(job1), true, 403, "job_1_0001 has ended"},
		{output, tokenOf(jobN(2)), true, 403, "does not belong to job_1_0001"},
		{logs, wire.LogToken(tokenOf(job1), ""), true, 200, ""},
		{logs, wire.LogToken(tokenOf(jobN(2)), ""), true, 403, "does not belong to job_1_0001"},
	} {
		if c.ended {
			l.send(&wire.DropJob{Epoch: 1, Job: job1})
			l.waitProcessed()
		}
		before := len(log.String())
		status, text := get(t, c.url, c.token)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s with %q: %d %q, want %d %q", c.url, c.token, status, text, c.status, c.want)
		}
		if problem := strings.HasPrefix(text, `{"title":`); c.status != 200 && problem != (c.url == logs) {
			t.Errorf("%s: the error is %q: only fetches get plain text", c.url, text)
		}
		logged := log.String()[before:]
		if refused := strings.Contains(logged, "a request is refused"); refused != (status == 401 || status == 403) {
			t.Errorf("%s with %q: logged is %s", c.url, c.token, logged)
		} else if refused && (!strings.Contains(logged, "addr=127.0.0.1:") || strings.Contains(logged, tokenOf(job1))) {
			t.Errorf("%s with %q: logged is %s", c.url, c.token, logged)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestTokensAreKept: a tracker that starts again serves outputs and logs as before. Only
// its user can read the token files. They are removed with the last file of their job.
func TestTokensAreKept(t *testing.T) {
	dir, disk := filepath.Join(t.TempDir(), "made"), t.TempDir()
	cfg := Config{ID: "t1", Dir: dir, Disks: []string{disk}, Logs: Logs{Age: time.Hour}}
	l := startUnregistered(t, cfg)
	l.connect(1)
	o := l.succeed(wire.Map, 0, doMap).Output
	tokenFile := filepath.Join(dir, token.Dir, job1.String())
	waitUntil(t, "the token file", func() bool { return exists(tokenFile) })
	for name, want := range map[string]os.FileMode{dir: 0o700, filepath.Dir(tokenFile): 0o700, tokenFile: 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, token.Dir, "making"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	l = startUnregistered(t, cfg)
	l.connect(1)
	base := "http://" + l.addr
	id := wire.AttemptID{Task: wire.TaskID{Job: job1, Kind: wire.Map}, N: o.Attempt}
	output := shuffle.URL(base, job1, 0, o.Attempt, 0)
	logs := fmt.Sprintf("%s/logs/%v/%v/stderr", base, job1, id)
	for url, token := range map[string]string{output: tokenOf(job1), logs: wire.LogToken(tokenOf(job1), "")} {
		if status, text := get(t, url, token); status != 200 {
			t.Errorf("%s: %d %s", url, status, text)
		}
		if status, text := get(t, url, tokenOf(jobN(2))); status != 403 {
			t.Errorf("%s with another token: %d %s", url, status, text)
		}
	}
	// A job with logs keeps its token, a job without files does not.
	l.send(&wire.SetHome{Epoch: 1, Job: jobN(2)})
	l.send(&wire.DropJob{Epoch: 1, Job: job1})
	l.send(&wire.DropJob{Epoch: 1, Job: jobN(2)})
	l.waitProcessed()
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Join(dir, token.Dir)); !slices.Equal(got, []string{job1.String()}) {
		t.Errorf("stored are %q", got)
	}
	// The token is removed with the logs.
	past := time.Now().Add(-2 * time.Hour)
	logDir := filepath.Join(dir, core.LogsDir, job1.String())
	if err := filepath.WalkDir(logDir, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Chtimes(path, past, past)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	l = startUnregistered(t, cfg)
	l.connect(1)
	waitUntil(t, "the token to go with the logs", func() bool { return !exists(tokenFile) })
	if status, text := get(t, strings.Replace(logs, base, "http://"+l.addr, 1), wire.LogToken(tokenOf(job1), "")); status != 403 {
		t.Errorf("removed logs: %d %s", status, text)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestDamagedTokens: if a token cannot be read, the tracker logs this, and does not serve
// the files of that job. It serves the files of other jobs.
func TestDamagedTokens(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{ID: "t1", Dir: dir}
	l := startUnregistered(t, cfg)
	l.connect(1)
	output := func(job wire.JobID) *wire.MapOutput {
		id := l.launchAs(wire.TaskID{Job: job, Kind: wire.Map}, wire.Launch{Index: doMap})
		return l.final(id, wire.AttemptSucceeded).Output
	}
	url := func(job wire.JobID, o *wire.MapOutput) string {
		return shuffle.URL("http://"+l.addr, job, 0, o.Attempt, 0)
	}
	output(job1)
	whole := output(jobN(2))
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	tokenFile := filepath.Join(dir, token.Dir, job1.String())
	if err := os.Truncate(tokenFile, 5); err != nil {
		t.Fatal(err)
	}

	log := new(logBuffer)
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	l = startUnregistered(t, cfg)
	inventory := l.connect(1)
	if len(inventory.Attempts) != 1 || inventory.Attempts[0].Attempt.Task.Job != jobN(2) {
		t.Errorf("inventory is %+v", inventory)
	}
	for _, want := range []string{"level=ERROR", "cannot be served", "job=job_1_0001", tokenFile + " is damaged", "token is lost"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	if status, text := get(t, url(jobN(2), whole), tokenOf(jobN(2))); status != 200 {
		t.Errorf("another job's output: %d %s", status, text)
	}
	if !exists(tokenFile+".damaged") || exists(tokenFile) {
		t.Errorf("stored are %q", names(t, filepath.Dir(tokenFile)))
	}
	// Later files of the job are served, also by a later process.
	again := output(job1)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	l = startUnregistered(t, cfg)
	l.connect(1)
	if status, text := get(t, url(job1, again), tokenOf(job1)); status != 200 {
		t.Errorf("its output after that: %d %s", status, text)
	}
	if got := names(t, filepath.Dir(tokenFile)); !slices.Equal(got, []string{job1.String(), jobN(2).String()}) {
		t.Errorf("stored are %q", got)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestTokenOfARelaunchedJob: a job that is launched again while its token is being removed
// keeps it.
func TestTokenOfARelaunchedJob(t *testing.T) {
	dir := t.TempDir()
	tokens, err := token.Open(filepath.Join(dir, token.Dir), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(Config{Dir: dir, Disks: []string{dir}, Service: Service{Advertise: "here:1"}, Logger: slog.New(slog.DiscardHandler)}, nil, nil, tokens, core.Config{})
	launched := func() { l.storeToken(&wire.SetHome{Epoch: 1, Job: job1, Token: tokenOf(job1)}) }
	check := func(want bool) {
		t.Helper()
		done := false
		l.diskWork.Put(func() { done = true })
		for do := range l.diskWork.All() {
			if do(); done {
				break
			}
		}
		if served := tokens.Check(job1, tokenOf(job1), token.ForShuffle, "") == nil; served != want || exists(filepath.Join(dir, token.Dir, job1.String())) != want {
			t.Errorf("outputs are served: %v, stored are %q", served, names(t, filepath.Join(dir, token.Dir)))
		}
	}
	launched()
	check(true)

	l.jobDropped(job1)
	launched()
	check(true)

	found := tokens.Versions()
	launched()
	l.sweepTokens(found, nil)
	check(true)

	found = tokens.Versions()
	l.sweepTokens(found, nil)
	launched()
	check(true)

	l.sweepTokens(tokens.Versions(), map[wire.JobID]bool{job1: true})
	l.jobDropped(job1)
	check(false)
}

// TestTokensInTemporaryDirectory: a temporary directory stores no tokens.
func TestTokensInTemporaryDirectory(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Temporary: true})
	l.connect(1)
	o := l.succeed(wire.Map, 0, doMap).Output
	if status, text := get(t, shuffle.URL("http://"+l.addr, job1, 0, o.Attempt, 0), tokenOf(job1)); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	if exists(l.path(token.Dir)) {
		t.Error("tokens are stored")
	}
}

// waitUntil polls until a condition holds.
func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	timeout := time.After(deadline)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
