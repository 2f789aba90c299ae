package fsshell

import (
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/dfs/local"
)

// FileSystems returns the file systems of a shell, with the configuration that conf reads. A command that needs nothing of
// it does not call conf.
func FileSystems(conf func() (hdfs.Conf, error)) dfs.FS {
	return dfs.Mux{"file": localFiles{local.New(), conf}, "hdfs": hdfs.Configured(conf)}
}

// localFiles is the local file system with the umask of Hadoop's configuration. Without one, the process's umask holds.
type localFiles struct {
	local.FS
	conf func() (hdfs.Conf, error)
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
