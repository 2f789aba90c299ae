package tasktracker

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

func TestServeLog(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	id := l.launch(wire.Map, 0, doExit)
	l.final(id, wire.AttemptFailed)
	l.send(&wire.DropJob{Epoch: 1, Job: job1})                          // its logs stay
	l.send(&wire.SetHome{Epoch: 1, Job: jobN(2), Token: tokenOf(job1)}) // job 2 has the same token
	await(l, func(h *wire.HomeReport) bool { return h.Job == jobN(2) })
	var all strings.Builder
	for i := range 30 {
		fmt.Fprintln(&all, "line", i)
	}
	good := fmt.Sprintf("/logs/%v/%v/stderr", job1, id)
	for _, c := range []struct {
		path, ranged string
		code         int
		want         string
	}{
		{good, "", 200, all.String()},
		{good, "bytes=0-5", 206, "line 0"},
		{good + "?tail=8", "", 200, "line 29\n"},
		{good + "?tail=100000", "", 200, all.String()},
		{good + "?tail=0", "", 200, ""},
		{good + "?tail=-1", "", 400, "tail"},
		{good + "?tail=x", "", 400, "x"},
		{fmt.Sprintf("/logs/%v/%v/output", job1, id), "", 400, "output"},
		{fmt.Sprintf("/logs/%v/%v/stderr", wire.JobID{Start: 1, N: 2}, id), "", 400, "not an attempt of"},
		{fmt.Sprintf("/logs/%v/..%%2f..%%2fworkers/stderr", job1), "", 400, "not an id"},
		{fmt.Sprintf("/logs/%v/%v/stderr", job1, wire.AttemptID{Task: id.Task, N: 1}), "", 404, "no such log"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.addr+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+wire.LogToken(tokenOf(job1), ""))
		if c.ranged != "" {
			request.Header.Set("Range", c.ranged)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != c.code ||
			c.code < 300 && string(text) != c.want || c.code >= 400 && !strings.Contains(string(text), c.want) {
			t.Errorf("%s %s: %d %q, %v", c.path, c.ranged, response.StatusCode, text, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestOldLogsAreRemoved: a tracker removes old logs at its start.
func TestOldLogsAreRemoved(t *testing.T) {
	dir := trackerDir(t)
	old := filepath.Join(dir, core.LogsDir, wire.JobID{Start: 1, N: 3}.String()) // of no running job
	young := filepath.Join(dir, core.LogsDir, wire.JobID{Start: 1, N: 2}.String())
	for _, d := range []string{old, young} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	cfg := Config{ID: "t1", Dir: dir, Logs: Logs{Age: time.Hour}}
	l := startUnregistered(t, cfg)
	l.connect(1)
	for end := time.Now().Add(deadline); ; {
		if _, err := os.Stat(old); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("old logs were not removed")
		}
		l.succeed(wire.Setup, 0, doSucceed) // takes some time
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}
