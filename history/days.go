package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Entry is a job's history file in a listing.
type Entry struct {
	Job  wire.JobID
	Day  time.Time // the UTC day of the job's end
	Name string    // URL
}

// day is the directory of one day.
type day struct {
	date time.Time
	name string // URL
}

// over reports whether the day ended longer than a duration ago.
func (d *day) over(now time.Time, since time.Duration) bool {
	return now.Sub(d.date.AddDate(0, 0, 1)) > since
}

// bytes sums up the sizes of the records and of the index.
func (d *day) bytes(f dfs.FS) (sum int64, err error) {
	for _, name := range []string{d.name, d.index()} {
		files, err := list(f, name)
		if err != nil {
			return 0, err
		}
		for i := range files {
			sum += files[i].Size
		}
	}
	return sum, nil
}

const dayLayout = "2006/01/02"

// entries lists the jobs with a history, newest first. It lists the files of a day when it comes to it. A job may
// have two files, if two leaders have written its end before and after midnight: the newer one is listed.
func entries(f dfs.FS, staging string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		days, err := allDays(f, staging)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		listed := make(map[wire.JobID]bool)
		for _, d := range slices.Backward(days) {
			jobs, err := d.jobs(f)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, job := range slices.Backward(jobs) {
				if listed[job] {
					continue
				}
				listed[job] = true
				if !yield(Entry{Job: job, Day: d.date, Name: dfs.Join(d.name, job.String())}, nil) {
					return
				}
			}
		}
	}
}

// jobs lists the jobs of a day, by id. Unfinished files have other names.
func (d *day) jobs(f dfs.FS) (jobs []wire.JobID, err error) {
	files, err := list(f, d.name)
	for i := range files {
		if job, err := wire.ParseJobID(dfs.Base(files[i].Name)); err == nil {
			jobs = append(jobs, job)
		}
	}
	slices.SortFunc(jobs, wire.JobID.Compare)
	return jobs, err
}

// Find reads a job's history. It returns fs.ErrNotExist if there is none.
func Find(f dfs.FS, staging string, job wire.JobID) (*Record, error) {
	days, err := allDays(f, staging)
	if err != nil {
		return nil, fmt.Errorf("find history of %v: %w", job, err)
	}
	for _, d := range slices.Backward(days) {
		if r, err := Read(f, dfs.Join(d.name, job.String())); !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
	return nil, fmt.Errorf("find history of %v: %w", job, fs.ErrNotExist)
}

// sweepReads is the maximum number of records that a Sweep reads to repair indexes.
const sweepReads = 10_000

// Sweep removes the days that ended longer than keep before now. It then removes the oldest
// days until at most limit bytes remain; a limit of 0 or less means no limit. The newest day
// always stays. Then it repairs the indexes of the days that stay, newest first.
func Sweep(f dfs.FS, staging string, now time.Time, keep time.Duration, limit int64) error {
	days, err := expire(f, staging, now, keep, limit)
	reads := sweepReads
	for _, d := range slices.Backward(days) {
		read, repairErr := d.repairIndex(f, reads, d.over(now, time.Hour))
		reads, err = reads-read, errors.Join(err, repairErr)
	}
	if err != nil {
		return fmt.Errorf("sweep history: %w", err)
	}
	return nil
}

// expire removes days, and returns those that stay.
func expire(f dfs.FS, staging string, now time.Time, keep time.Duration, limit int64) ([]day, error) {
	days, err := allDays(f, staging)
	if err != nil {
		return nil, err
	}
	sizes, sum := make([]int64, len(days)), int64(0)
	for i := range days {
		if sizes[i], err = days[i].bytes(f); err != nil {
			return nil, err
		}
		sum += sizes[i]
	}
	var errs []error
	for len(days) > 1 && (keep > 0 && days[0].over(now, keep) || limit > 0 && sum > limit) {
		name := days[0].name
		sum -= sizes[0]
		days, sizes = days[1:], sizes[1:]
		if err := f.RemoveAll(name); err != nil {
			errs = append(errs, err)
			continue
		}
		// Remove the month and the year if they are empty now.
		if f.Remove(dfs.Dir(name)) == nil {
			_ = f.Remove(dfs.Dir(dfs.Dir(name)))
		}
	}
	return days, errors.Join(errs...)
}

// allDays lists the days' directories, oldest first. It skips directories that are removed meanwhile.
func allDays(f dfs.FS, staging string) ([]day, error) {
	names := []string{root(staging)}
	for range 3 { // years, months, days
		var below []string
		for _, name := range names {
			infos, err := list(f, name)
			if err != nil {
				return nil, err
			}
			for i := range infos {
				if infos[i].Dir {
					below = append(below, infos[i].Name)
				}
			}
		}
		names = below
	}
	var days []day
	for _, name := range names {
		date, err := time.Parse(dayLayout, name[len(root(staging))+1:])
		if err != nil {
			continue // not a day's directory
		}
		days = append(days, day{date: date, name: name})
	}
	slices.SortFunc(days, func(a, b day) int { return cmp.Compare(a.date.Unix(), b.date.Unix()) })
	return days, nil
}

func list(f dfs.FS, name string) ([]dfs.Info, error) {
	infos, err := f.List(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return infos, err
}
