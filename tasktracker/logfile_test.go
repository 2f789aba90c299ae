package tasktracker

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

func readWholeLog(t *testing.T, name string) string {
	t.Helper()
	log, err := attemptlog.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(io.NewSectionReader(log, 0, log.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkEnds checks that a log has the first and the last part of the text written to it.
// Tests of package attemptlog check more.
func checkEnds(t *testing.T, got, all string, limit int) {
	t.Helper()
	if !strings.HasPrefix(got, all[:limit/2]) || !strings.HasSuffix(got, all[len(all)-limit/4:]) || !strings.Contains(got, " bytes were left out here: ") {
		t.Errorf("the log has %d bytes of %d, not the first and the last part", len(got), len(all))
	}
}

// TestLongLogs: the logs of an attempt that writes 12 MB stay within the limit, also while
// it runs. The first and the last part are served.
func TestLongLogs(t *testing.T) {
	const limit = 1 << 20
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Logs: Logs{Attempt: limit}})
	l.connect(1)
	var all strings.Builder
	for n := range floodLines {
		all.WriteString(floodLine(n))
	}
	id := l.launch(wire.Map, 0, doWriteBothLogs)
	await(l, func(r *wire.Report) bool { return r.Attempt == id && r.State == wire.AttemptReady })
	size := func() (sum int64) {
		for _, name := range names(t, core.LogPath(l.dir, id)) {
			info, err := os.Stat(filepath.Join(core.LogPath(l.dir, id), name))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if err == nil {
				sum += info.Size()
			}
		}
		return sum
	}
	if n := size(); n > limit {
		t.Errorf("the logs of a running attempt take %d bytes", n)
	}
	l.send(&wire.Grant{Epoch: 1, Attempt: id})
	l.final(id, wire.AttemptSucceeded)
	if n := size(); n > limit {
		t.Errorf("the logs take %d bytes", n)
	}
	for _, stream := range []string{"stdout", "stderr"} {
		checkEnds(t, readWholeLog(t, filepath.Join(core.LogPath(l.dir, id), stream)), all.String(), limit/2)
		url := fmt.Sprintf("http://%s/logs/%v/%v/%s", l.addr, job1, id, stream)
		if code, text := get(t, url, wire.LogToken(tokenOf(job1), "")); code != http.StatusOK {
			t.Errorf("code %d", code)
		} else {
			checkEnds(t, text, all.String(), limit/2)
		}
		if _, text := get(t, url+"?tail=200", wire.LogToken(tokenOf(job1), "")); text != floodLine(floodLines-2)+floodLine(floodLines-1) {
			t.Errorf("the end is %q", text)
		}
	}
	// The next attempt of the same worker has its own logs.
	next := l.launch(wire.Map, 1, doExit)
	l.final(next, wire.AttemptFailed)
	if text := readWholeLog(t, filepath.Join(core.LogPath(l.dir, next), "stderr")); !strings.HasPrefix(text, "line 0\n") || !strings.HasSuffix(text, "line 29\n") {
		t.Errorf("the next log is %q", text)
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestLogsBeforeAttempts: output of a program before its first attempt is limited too.
func TestLogsBeforeAttempts(t *testing.T) {
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Logs: Logs{Attempt: MinAttemptLogs}}, "-crash", "-flood")
	l.connect(1)
	r := l.fail(doSucceed)
	if !strings.HasSuffix(r.Log, "crash before the first message") {
		t.Errorf("log is %q", r.Log)
	}
}
