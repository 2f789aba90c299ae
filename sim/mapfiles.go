package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/quernmr/quern/wire"
)

// With Options.MapFiles, two of three maps of jobs with reduces write a file beside their map output, which package
// runtime publishes. The file has the digest of the attempt's records.
//
// Check V19: the files of a map are published once. At the end of a successful job there is one file of each
// such map, from an attempt with the same records as the attempt that reduces have read.

// mapFilesOutput is the output that maps write to.
const mapFilesOutput = "days"

// hasFile reports whether a map writes a file.
func hasFile(m int) bool { return m%3 != 2 }

func mapFileLine(digest uint64) []byte { return fmt.Appendf(nil, "%x\n", digest) }

// collected is the end of the code of a map with files.
func (p *worker) collected(wire.AttemptID) (*wire.MapOutput, error) {
	if p.dead.Load() || p.run == nil {
		return nil, errDead
	}
	return p.writeOutput(p.run)
}

// publishes reports whether maps of a task's job publish files, and the task is a map.
func (w *world) publishes(task wire.TaskID) bool {
	c, i := w.job(task.Job)
	return task.Kind == wire.Map && c.sub.Plan.Jobs[i].Reduces > 0
}

// countPublished counts attempts that found the files of their map published.
func (w *world) countPublished(to string, err error) {
	task, parsed := wire.ParseTaskID(to[strings.LastIndexByte(to, '/')+1:])
	if errors.Is(err, fs.ErrExist) && parsed == nil && w.publishes(task) {
		w.mapsAgain++
	}
}

// checkPublished checks that the files of a map were not published before.
func (b *book) checkPublished(w *world, task wire.TaskID, by string) {
	if before := b.published[task]; before != "" {
		w.fail("V19: %s publishes the files of %v, as %s has before", by, task, before)
	}
	b.published[task] = by
}

// checkMapFile checks the file of a map. read is the digest of the records that reduces have read.
func (w *world) checkMapFile(id wire.JobID, m int, data string, read uint64, known bool) {
	if known && data != string(mapFileLine(read)) {
		w.fail("V19: the file of map %d of %v has %q, but reduces have read %x", m, id, data, read)
	}
}
