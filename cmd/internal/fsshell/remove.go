package fsshell

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/dfs"
)

// rm removes files, and with -r directories. Where there is a trash, it moves them there.
func (r *call) rm(args []string) error {
	trees := r.flag["r"] || r.flag["R"]
	for _, arg := range args {
		all, err := r.expand(arg)
		var path *pathError
		if err != nil && r.flag["f"] && errors.As(err, &path) {
			continue // no name matches
		}
		if err != nil {
			r.fail(err)
			continue
		}
		for _, p := range all {
			if p.Attributes == nil && r.flag["f"] {
				continue
			}
			err := r.must(p, func(p place) error {
				if p.Dir && !trees {
					return &pathError{p.text, isDirectory}
				}
				return r.remove(p)
			})
			if err != nil {
				r.fail(err)
			}
		}
	}
	return nil
}

func (r *call) remove(p place) error {
	if p.isRoot() {
		return fmt.Errorf("`%s': this is the root directory, which %s does not remove", p.text, r.Program)
	}
	if !r.flag["skipTrash"] {
		if moved, err := r.moveToTrash(p); moved || err != nil {
			return err
		}
	}
	remove := p.files.Remove
	if p.Dir {
		remove = p.files.RemoveAll
	}
	if err := remove(p.url); err != nil {
		return err
	}
	r.println("Deleted " + p.text)
	return nil
}

// trashed is a file system that may keep removed files.
type trashed interface {
	// TrashInterval returns how long removed files are kept; 0: not at all.
	TrashInterval(name string) (time.Duration, error)

	// Trash returns the directory of removed files: HOME/.Trash.
	Trash(name string) (string, error)
}

// moveToTrash moves a path to Current in the trash, below which it keeps its own path.
func (r *call) moveToTrash(p place) (moved bool, err error) {
	files, ok := p.files.(trashed)
	if !ok {
		return false, nil
	}
	kept, err := files.TrashInterval(p.url)
	if err != nil || kept == 0 {
		return false, err
	}
	top, err := files.Trash(p.url)
	if err != nil {
		return false, err
	}
	switch {
	case p.url == top || strings.HasPrefix(p.url, top+"/"):
		return false, nil // it is in the trash already
	case strings.HasPrefix(top, p.url+"/"):
		return false, worded("Cannot move \"%s\" to the trash, as it contains the trash. Consider using -skipTrash option", qualified(p.url))
	}
	_, path := cut(p.url)
	to, err := r.inTrash(p, dfs.Join(top, "Current"), path)
	if err == nil {
		name := to
		for err = r.rename(p, to); errors.Is(err, fs.ErrExist); err = r.rename(p, to) {
			to = stamped(name)
		}
	}
	if err != nil {
		return false, fmt.Errorf("%w. Consider using -skipTrash option", err)
	}
	r.warn(fmt.Sprintf("Moved: '%s' to trash at: %s", qualified(p.url), qualified(to)))
	return true, nil
}

// stamped is the name of what has the same name as something in the trash.
func stamped(name string) string { return name + strconv.FormatInt(time.Now().UnixMilli(), 10) }

// inTrash returns the name for a path in the trash, and makes the directories above it. One of them can be a file that was
// removed earlier: then a directory gets another name, as in Hadoop.
func (r *call) inTrash(p place, current, path string) (string, error) {
	to := dfs.Join(current, strings.TrimPrefix(path, "/"))
	for dir := dfs.Dir(to); ; {
		err := dfs.Private(p.files).MkdirAll(dir)
		if err == nil || !errors.Is(err, syscall.ENOTDIR) {
			return dfs.Join(dir, dfs.Base(to)), err
		}
		file, statErr := r.at("", dir)
		for statErr == nil && file.Attributes == nil {
			file, statErr = r.at("", dfs.Dir(file.url))
		}
		if statErr != nil || file.Dir || !strings.HasPrefix(file.url, current+"/") {
			return "", errors.Join(err, statErr)
		}
		dir = stamped(file.url) + strings.TrimPrefix(dir, file.url)
	}
}

// checkpointForm is the form of the names of checkpoints, which -N can follow.
const checkpointForm = "060102150405"

// expunge removes old checkpoints of the trash, then makes one of what is in it. With -immediate it removes all.
func (r *call) expunge(args []string) error {
	url := r.value["fs"]
	if url == "" {
		url = cmp.Or(r.Default, "file:///")
	}
	root, err := r.given(url)
	if err != nil {
		return err
	}
	files, ok := root.files.(trashed)
	if !ok {
		return nil
	}
	kept, err := files.TrashInterval(root.url)
	if err != nil || kept == 0 {
		return err
	}
	name, err := files.Trash(root.url)
	if err != nil {
		return err
	}
	trash, err := r.at("", name)
	if err != nil || trash.Attributes == nil {
		return err
	}
	if r.flag["immediate"] {
		return errors.Join(r.checkpoint(trash), r.removeCheckpoints(trash, 0))
	}
	return errors.Join(r.removeCheckpoints(trash, kept), r.checkpoint(trash))
}

// removeCheckpoints removes the checkpoints that are older than an age.
func (r *call) removeCheckpoints(trash place, age time.Duration) error {
	all, err := trash.children()
	for _, p := range all {
		text, _, _ := strings.Cut(dfs.Base(p.url), "-")
		made, noCheckpoint := time.ParseInLocation(checkpointForm, text, r.Location)
		if noCheckpoint == nil && time.Since(made) >= age {
			err = errors.Join(err, p.files.RemoveAll(p.url))
		}
	}
	return err
}

// checkpoint gives what is in the trash the name of a checkpoint.
func (r *call) checkpoint(trash place) error {
	current, err := r.inside(trash, "Current")
	if err != nil || current.Attributes == nil {
		return err
	}
	name := dfs.Join(trash.url, time.Now().In(r.Location).Format(checkpointForm))
	to := name
	for i := 1; ; i++ {
		if err := current.files.RenameDir(current.url, to); !errors.Is(err, fs.ErrExist) {
			return err
		}
		to = fmt.Sprintf("%s-%d", name, i)
	}
}

func (r *call) rmdir(args []string) error {
	return r.each(args, func(p place) error {
		if !p.Dir {
			return &pathError{p.text, notDirectory}
		}
		all, err := p.children()
		switch {
		case err != nil:
			return err
		case len(all) == 0:
			return p.files.Remove(p.url)
		case r.flag["-ignore-fail-on-non-empty"]:
			return nil
		}
		return &pathError{p.text, notEmpty}
	})
}
