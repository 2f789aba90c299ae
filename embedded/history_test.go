//go:build unix

package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	trackercore "github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestHistory: with histories, the attempts of an ended job and their logs are there until Close, as its pages show them.
func TestHistory(t *testing.T) {
	for _, kept := range []bool{true, false} {
		logs := make(chan string, 1)
		c := start(t, Config{Slots: 1, History: kept}, wordCount(splitWords, func(partition int) {
			if partition == 0 {
				file := <-logs
				os.MkdirAll(filepath.Dir(file), 0o755)
				os.WriteFile(file, []byte("written\n"), 0o644)
				logs <- file
			}
		}))
		ids := submit(t, c)
		attempt := wire.AttemptID{Task: wire.TaskID{Job: ids[0], Kind: wire.Reduce}, N: 1000}
		file := filepath.Join(trackercore.LogPath(filepath.Join(c.dir.path, "tracker1"), attempt), "stderr")
		logs <- file
		succeed(t, c, ids)
		list, err := c.Attempts(t.Context(), core.Caller{}, ids[0], wire.AttemptID{})
		if (err == nil) != kept || kept && len(list.Attempts) < len(inputs)+reduces {
			t.Errorf("histories are kept: %v; attempts %v, %v", kept, list.Attempts, err)
		}
		look, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
		for exists(trackercore.JobPath(filepath.Join(c.dir.path, "tracker1"), ids[0])) || !kept && exists(file) {
			select {
			case <-look.C:
			case <-late:
				t.Fatal("the task tracker does not drop the job")
			}
		}
		look.Stop()
		if text, err := c.OpenLog("tracker1", attempt, "stderr"); (err == nil) != kept {
			t.Errorf("histories are kept: %v; opening a log: %v", kept, err)
		} else if err == nil {
			text.Close()
		}
		closeCluster(t, c)
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
