package isolation

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/identity"
)

// secretNames are files that only directories of daemons have, or that are keys of a cluster. Other daemons and users of the
// same account may have such directories anywhere.
var secretNames = append(datadir.Markers(), identity.AuthorityKeyFile, identity.GossipFile, identity.KeyFile)

// maxLooked limits the entries that a worker's start looks at in a path that its submission names, outer directories first.
// Config.Hidden hides what is further in.
const maxLooked = 4096

// apart keeps a worker from directories with secretNames: a path in one is an error, and those below the path are
// hidden. So are sockets below it, by which a job could reach programs outside of its namespaces.
func (p *planner) apart(real string) error {
	for dir := real; dir != "/"; dir = filepath.Dir(dir) {
		for _, name := range secretNames {
			if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
				return fmt.Errorf("in %s, which has the keys or data of a daemon or user (%s), which jobs cannot use (-isolation namespace)", dir, name)
			}
		}
	}
	dirs, sockets := secrets(real, maxLooked)
	p.hidden = append(p.hidden, dirs...)
	p.sockets = append(p.sockets, sockets...)
	return nil
}

// Secrets returns the directories below others that have secretNames. It looks at so many entries of each.
func Secrets(dirs []string, entries int) (found []string) {
	for _, dir := range dirs {
		inner, _ := secrets(dir, entries)
		found = append(found, inner...)
	}
	return found
}

func secrets(top string, entries int) (dirs, sockets []string) {
	for todo := []string{top}; len(todo) > 0 && entries > 0; todo = todo[1:] {
		f, err := os.Open(todo[0])
		if err != nil {
			continue // jobs cannot read it, either
		}
		list, _ := f.ReadDir(entries)
		f.Close()
		entries -= len(list)
		if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Type().IsRegular() && slices.Contains(secretNames, e.Name()) }) {
			dirs = append(dirs, todo[0])
			continue
		}
		for _, e := range list {
			switch {
			case e.IsDir():
				todo = append(todo, filepath.Join(todo[0], e.Name()))
			case e.Type()&fs.ModeSocket != 0:
				sockets = append(sockets, filepath.Join(todo[0], e.Name()))
			}
		}
	}
	return dirs, sockets
}

// Private returns the files and directories below others that the daemon's account can read and not all users can: copies of
// secret files, and keys of other programs. It looks at so many entries, and not in the directories that are shown on purpose.
func Private(dirs, shown []string, entries int) (found []string) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if entries--; entries < 0 {
				return filepath.SkipAll
			}
			switch {
			case err != nil:
				return nil // jobs cannot read it, either
			case slices.ContainsFunc(shown, func(dir string) bool { return within(path, filepath.Clean(dir)) }):
			case isPrivate(path, e):
				found = append(found, path)
			default:
				return nil
			}
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		})
	}
	return found
}

func isPrivate(path string, e fs.DirEntry) bool {
	rights := fs.FileMode(0o4)
	if e.IsDir() {
		rights = 0o5
	}
	info, err := e.Info()
	if err != nil || info.Mode().Perm()&rights == rights || !e.IsDir() && !e.Type().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
