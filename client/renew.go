package client

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// renewEvery is how often a client that waits renews its staged files. Job trackers remove staged
// files that no job needs, a day after the last change of their directory.
const renewEvery = time.Hour

// renewer renews the staged files of a client that waits.
type renewer struct {
	*session
	next time.Time
}

// wall returns a time without its monotonic part, which does not advance while a machine sleeps.
func wall(t time.Time) time.Time { return t.Round(0) }

// renewIfDue fails if the files are gone: then the job could not run.
func (r *renewer) renewIfDue() error {
	now := wall(r.Now())
	if now.Before(r.next) {
		return nil
	}
	names := []string{dfs.Join(r.sub.Staging, wire.StagedSubmission)}
	if r.Program != "" { // it was uploaded
		names = append(names, r.sub.Program.Path)
	}
	var failed error
	for _, name := range names {
		if err := renew(r.FS, name); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("while the job waited, its staged files were removed: submit it again: %w", err)
		} else if err != nil {
			failed = err
		}
	}
	r.next = now.Add(renewEvery)
	if failed != nil {
		r.next = now.Add(busyNoteEvery)
		fmt.Fprintf(r.Out, "the staged files may expire; trying again: %s\n", OneLine(failed.Error()))
	}
	return nil
}

// renew changes the directory of a file, so that its time of modification is the present. It returns
// fs.ErrNotExist if the file is gone.
func renew(files dfs.FS, name string) error {
	files = dfs.Private(files)
	marker := dfs.Join(dfs.Dir(name), ".waiting-"+rand.Text())
	w, err := files.Create(marker)
	if err == nil {
		err = w.Close()
		if failed := files.Remove(marker); !errors.Is(failed, fs.ErrNotExist) { // a repeated request finds it removed
			err = errors.Join(err, failed)
		}
	}
	if err == nil {
		_, err = files.Stat(name)
	}
	if err != nil {
		return fmt.Errorf("renew staged files: %w", err)
	}
	return nil
}
