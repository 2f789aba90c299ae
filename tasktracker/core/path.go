package core

import (
	"fmt"
	"path"
	"strconv"

	"github.com/quernmr/quern/wire"
)

// Files in the directory of an attempt: a map's output, the report of that output, and the record
// that the attempt is in, see runtime.ReadPosition.
const (
	OutputFile   = "output"
	ReportFile   = "report"
	PositionFile = "position"
)

// JobsDir, LogsDir and RunDir are the subdirectories of a tracker's directory. JobsDir and SharedDir are on its disks,
// too, see package sidedirs.
const (
	JobsDir   = "jobs"
	LogsDir   = "logs"
	RunDir    = "run"
	SharedDir = "shared"
)

// PrivateTmp is the directory in a worker's directory that an isolated worker has as /tmp.
const PrivateTmp = "tmp"

// MapOutputPath returns the path of a map's output on a disk.
func MapOutputPath(disk string, job wire.JobID, m, attempt int) string {
	id := wire.AttemptID{Task: wire.TaskID{Job: job, Kind: wire.Map, N: m}, N: attempt}
	return path.Join(disk, JobsDir, job.String(), id.String(), OutputFile)
}

// JobPath returns the directory of a job on a disk, or in the tracker's directory.
func JobPath(disk string, id wire.JobID) string { return path.Join(disk, JobsDir, id.String()) }

// LogPath returns the directory of an attempt's logs below a tracker's directory.
func LogPath(dir string, id wire.AttemptID) string {
	return path.Join(dir, LogsDir, id.Task.Job.String(), id.String())
}

// WorkDir returns the working directory below an attempt's directory.
func WorkDir(attempt string) string { return path.Join(attempt, "work") }

func stderrIn(dir string) string { return path.Join(dir, "stderr") }

func (d *disk) jobDir(id wire.JobID) string {
	return JobPath(d.path, id)
}

func (c *Core) jobLogs(id wire.JobID) string {
	return path.Join(c.cfg.Dir, LogsDir, id.String())
}

// dir is the directory of an attempt that has started.
func (a *attempt) dir() string {
	return path.Join(a.disk.jobDir(a.id.Task.Job), a.id.String())
}

func (c *Core) attemptLogs(id wire.AttemptID) string {
	return LogPath(c.cfg.Dir, id)
}

func (c *Core) workerDir(worker int) string {
	return path.Join(c.cfg.Dir, RunDir, strconv.Itoa(worker))
}

func (h *home) dir() string {
	return path.Join(h.disk.jobDir(h.job.id), fmt.Sprintf("home-%05d", h.partition))
}
