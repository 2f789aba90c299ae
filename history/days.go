package history

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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
	date  time.Time
	name  string // URL
	files []dfs.Info
}

func (d *day) bytes() int64 {
	var sum int64
	for i := range d.files {
		sum += d.files[i].Size
	}
	return sum
}

const dayLayout = "2006/01/02"

// List lists the jobs with a history, newest first. An empty list is not an error. A job may have two
// files, if two leaders have written its end before and after midnight: List has the newer one.
func List(f dfs.FS, staging string) ([]Entry, error) {
	days, err := allDays(f, staging)
	if err != nil {
		return nil, fmt.Errorf("list history: %w", err)
	}
	var entries []Entry
	listed := make(map[wire.JobID]bool)
	for _, d := range slices.Backward(days) {
		first := len(entries)
		for i := range d.files {
			// Unfinished files have other names.
			if job, err := wire.ParseJobID(dfs.Base(d.files[i].Name)); err == nil && !listed[job] {
				listed[job] = true
				entries = append(entries, Entry{Job: job, Day: d.date, Name: d.files[i].Name})
			}
		}
		slices.SortFunc(entries[first:], func(a, b Entry) int { return b.Job.Compare(a.Job) })
	}
	return entries, nil
}

// Find reads a job's history. It returns fs.ErrNotExist if there is none.
func Find(f dfs.FS, staging string, job wire.JobID) (*Record, error) {
	entries, err := List(f, staging)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Job == job {
			return Read(f, e.Name)
		}
	}
	return nil, fmt.Errorf("find history of %v: %w", job, fs.ErrNotExist)
}

// Sweep removes the days that ended longer than keep before now. It then removes the oldest
// days until at most limit bytes remain; a limit of 0 or less means no limit. The newest day
// always stays.
func Sweep(f dfs.FS, staging string, now time.Time, keep time.Duration, limit int64) error {
	days, err := allDays(f, staging)
	if err != nil {
		return fmt.Errorf("sweep history: %w", err)
	}
	var sum int64
	for i := range days {
		sum += days[i].bytes()
	}
	var errs []error
	for i := 0; i < len(days)-1; i++ {
		d := &days[i]
		old := keep > 0 && now.Sub(d.date.AddDate(0, 0, 1)) > keep
		if !old && (limit <= 0 || sum <= limit) {
			break
		}
		sum -= d.bytes()
		if err := f.RemoveAll(d.name); err != nil {
			errs = append(errs, fmt.Errorf("sweep history: %w", err))
			continue
		}
		// Remove the month and the year if they are empty now.
		if f.Remove(dfs.Dir(d.name)) == nil {
			_ = f.Remove(dfs.Dir(dfs.Dir(d.name)))
		}
	}
	return errors.Join(errs...)
}

// allDays lists the days' directories and their files, oldest first. It skips directories
// that are removed meanwhile.
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
		files, err := list(f, name)
		if err != nil {
			return nil, err
		}
		days = append(days, day{date: date, name: name, files: files})
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
