package fsshell

import (
	"fmt"
	"os/user"
	"path/filepath"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/dfs/local"
)

// FileSystems returns the file systems of a shell, with the configuration that conf reads. A command that needs nothing of
// it does not call conf.
func FileSystems(conf func() (hdfs.Conf, error)) dfs.FS {
	return dfs.Mux{"file": localFiles{local.New(), conf, home}, "hdfs": hdfs.Configured(conf)}
}

// localFiles is the local file system with the umask and the trash of Hadoop's configuration. Without a umask there, the
// process's own holds.
type localFiles struct {
	local.FS
	conf func() (hdfs.Conf, error)
	home func() (string, error)
}

// home returns the user's home directory, in which Java has its user.home.
func home() (string, error) {
	self, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("find the home directory: %w", err)
	}
	return self.HomeDir, nil
}

// Trash implements trashed.
func (f localFiles) Trash(string) (string, error) {
	home, err := f.home()
	if err != nil {
		return "", err
	}
	return dfs.Clean(filepath.Join(home, ".Trash"))
}

// TrashInterval implements trashed.
func (f localFiles) TrashInterval(string) (time.Duration, error) {
	conf, err := f.conf()
	if err != nil {
		return 0, err
	}
	return conf.TrashInterval()
}

// making returns the file system for new files and directories.
func (f localFiles) making() (dfs.FS, error) {
	conf, err := f.conf()
	if err != nil {
		return nil, err
	}
	allowed, err := conf.Allowed()
	return dfs.Creating(f.FS, dfs.Creation{Allowed: allowed}), err
}

// Create implements [dfs.FS].
func (f localFiles) Create(name string) (dfs.Writer, error) {
	files, err := f.making()
	if err != nil {
		return nil, err
	}
	return files.Create(name)
}

// MkdirAll implements [dfs.FS].
func (f localFiles) MkdirAll(name string) error {
	files, err := f.making()
	if err != nil {
		return err
	}
	return files.MkdirAll(name)
}
