package testbed

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// HDFS starts four DataNodes in two racks, with one replica of each block. The caller closes it.
// proxied and properties are as in [minicluster.Config]. If this machine cannot run HDFS, the
// error is [minicluster.ErrUnavailable].
func (b *Bench) HDFS(block int64, proxied bool, properties map[string]string) (*minicluster.Cluster, error) {
	jars, err := minicluster.Fetch(b.Ctx)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(b.Path("hdfs")); err != nil { // left by an earlier run
		return nil, err
	}
	return minicluster.Start(b.Ctx, minicluster.Config{Jars: jars, Dir: b.Path("hdfs"), Optimized: true, Racks: []string{"/a", "/a", "/b", "/b"},
		Replication: 1, BlockSize: block, Proxied: proxied, Properties: properties})
}

// Client returns a file system with additional properties, for a process on the machine of a
// DataNode; with nil, on a machine without one.
func Client(h *minicluster.Cluster, at *minicluster.Daemon, properties map[string]string) (*hdfs.FS, error) {
	conf, err := hdfs.ReadConf(h.Conf())
	if err != nil {
		return nil, err
	}
	maps.Copy(conf, properties)
	if at != nil {
		conf["dfs.client.local.interfaces"] = at.IP
	}
	return hdfs.New(hdfs.Options{Conf: conf, User: minicluster.Superuser}), nil
}

// Put writes a file to HDFS from a DataNode's machine. That DataNode gets the first replica.
func Put(h *minicluster.Cluster, content io.Reader, name string, at *minicluster.Daemon, properties map[string]string) (err error) {
	f, err := Client(h, at, properties)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.MkdirAll(dfs.Dir(name)); err != nil {
		return err
	}
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, content); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// PutFile is Put with the content of a local file.
func PutFile(h *minicluster.Cluster, local, name string, at *minicluster.Daemon, properties map[string]string) error {
	in, err := os.Open(local)
	if err != nil {
		return err
	}
	defer in.Close()
	return Put(h, in, name, at, properties)
}

// Digest returns a hash of a job's part files, joined. It refuses an empty output, because two
// wrong empty outputs would be equal.
func Digest(f dfs.FS, dir string) (sum [sha256.Size]byte, err error) {
	infos, err := f.List(dir)
	if err != nil {
		return sum, err
	}
	all, size := sha256.New(), int64(0)
	for _, info := range infos {
		if !strings.HasPrefix(dfs.Base(info.Name), "part-") {
			continue
		}
		file, err := f.Open(info.Name)
		if err != nil {
			return sum, err
		}
		n, err := io.Copy(all, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return sum, err
		}
		size += n
	}
	if size == 0 {
		return sum, fmt.Errorf("the part files in %s are empty or missing", dir)
	}
	return sha256.Sum256(all.Sum(nil)), nil
}
