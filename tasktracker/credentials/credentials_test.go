package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// issuer issues numbered tokens that expire after a day.
type issuer struct {
	mu        sync.Mutex
	issued    []string // "user: names" of each
	failing   error
	cancelled []int
}

const life = 24 * time.Hour

func (i *issuer) issue(user string, names []string) ([]byte, time.Time, func() error, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.failing != nil {
		return nil, time.Time{}, nil, i.failing
	}
	i.issued = append(i.issued, user+": "+strings.Join(names, ","))
	n := len(i.issued)
	return fmt.Appendf(nil, "token %d", n), time.Now().Add(life), func() error {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.cancelled = append(i.cancelled, n)
		return nil
	}, nil
}

func (i *issuer) fail(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failing = err
}

func wantFile(t *testing.T, dir, want string) {
	t.Helper()
	name := filepath.Join(dir, File)
	got, err := os.ReadFile(name)
	if want == "" {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", dir, got, err)
		}
		return
	}
	info, err2 := os.Stat(name)
	if err = errors.Join(err, err2); err != nil || string(got) != want || info.Mode() != 0o600 {
		t.Errorf("%s: %q, %v, %v; want %q", dir, got, info.Mode(), err, want)
	}
	if all, _ := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("%d files, want 1", len(all))
	}
}

// TestRenewal: all workers of a submission have its tokens, which are replaced before they expire,
// also after failures, and all are cancelled at its end.
func TestRenewal(t *testing.T) {
	a, b, other := t.TempDir(), t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		s := New(i.issue, slog.New(slog.DiscardHandler))
		for _, dir := range []string{a, b} {
			if err := s.Prepare("s1", "ann", []string{"hdfs:/x"}, dir); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Prepare("s1", "bob", nil, other); err != nil {
			t.Fatal(err)
		}
		wantFile(t, a, "token 1")
		wantFile(t, b, "token 1")
		wantFile(t, other, "token 2")
		if err := os.RemoveAll(b); err != nil { // its worker has ended
			t.Fatal(err)
		}
		<-time.After(life/2 - time.Second)
		synctest.Wait()
		wantFile(t, a, "token 1")
		i.fail(errors.New("no answer"))
		<-time.After(2 * time.Second)
		synctest.Wait()
		wantFile(t, a, "token 1")
		i.fail(nil)
		<-time.After(maxRetry)
		synctest.Wait()
		if got, err := os.ReadFile(filepath.Join(a, File)); err != nil || string(got) == "token 1" {
			t.Errorf("half of its life later: %s, %v", got, err)
		}
		if len(i.issued) != 4 || len(i.cancelled) != 0 || i.issued[0] != "ann: hdfs:/x" {
			t.Errorf("issued %v, cancelled %v", i.issued, i.cancelled)
		}
		s.Forget("s1")()
		wantFile(t, a, "")
		wantFile(t, other, "")
		<-time.After(10 * life)
		synctest.Wait()
		if len(i.issued) != 4 || len(i.cancelled) != 4 || s.Forget("s1") != nil {
			t.Errorf("after the end: issued %v, cancelled %v", i.issued, i.cancelled)
		}
	})
}

// TestFailures: an error is the first workers' own; the next worker tries again.
func TestFailures(t *testing.T) {
	dir := t.TempDir()
	i := &issuer{failing: errors.New("not allowed")}
	s := New(i.issue, slog.New(slog.DiscardHandler))
	if err := s.Prepare("s1", "ann", nil, dir); !errors.Is(err, i.failing) {
		t.Error(err)
	}
	wantFile(t, dir, "")
	i.fail(nil)
	if err := s.Prepare("s1", "ann", nil, dir); err != nil {
		t.Error(err)
	}
	wantFile(t, dir, "token 1")
	if err := s.Prepare("s1", "ann", nil, filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, end := range s.Close() {
		end()
	}
	wantFile(t, dir, "")
	if len(i.cancelled) != 1 || New(nil, nil).Prepare("s1", "", nil, dir) != nil {
		t.Errorf("cancelled %v", i.cancelled)
	}
}

// TestForgottenWhileRenewed: new tokens that come after the end of their submission are cancelled.
func TestForgottenWhileRenewed(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		answer := make(chan struct{})
		s := New(func(user string, names []string) ([]byte, time.Time, func() error, error) {
			if len(i.issued) > 0 {
				<-answer
			}
			return i.issue(user, names)
		}, slog.New(slog.DiscardHandler))
		if err := s.Prepare("s1", "ann", nil, dir); err != nil {
			t.Fatal(err)
		}
		<-time.After(life/2 + time.Second)
		s.Forget("s1")()
		close(answer)
		synctest.Wait()
		wantFile(t, dir, "")
		if slices.Sort(i.cancelled); !slices.Equal(i.cancelled, []int{1, 2}) {
			t.Errorf("cancelled %v", i.cancelled)
		}
	})
}

// TestExpired: a job that runs for longer than tokens live has new ones in time. At its end only those are
// cancelled that have not expired: the file system knows no others.
func TestExpired(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		i := &issuer{}
		s := New(i.issue, slog.New(slog.DiscardHandler))
		if err := s.Prepare("s1", "ann", nil, dir); err != nil {
			t.Fatal(err)
		}
		<-time.After(5*life + time.Hour)
		synctest.Wait()
		wantFile(t, dir, "token 11")
		s.Forget("s1")()
		if !slices.Equal(i.cancelled, []int{10, 11}) {
			t.Errorf("cancelled %v", i.cancelled)
		}
	})
}
