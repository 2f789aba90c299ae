package jobtracker

import (
	"crypto/rand"
	"fmt"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// NewCluster makes a random id and nonce for a cluster that is to be bootstrapped
// and writes the nonce to <staging>/clusters/<id>, where its trackers will read
// it. Every job tracker without a state may call it: the first to lead decides
// whose cluster it is, and the others remove their own files.
func NewCluster(f dfs.FS, staging string) (cluster, nonce string, err error) {
	cluster, nonce = rand.Text(), rand.Text()
	name := dfs.Join(staging, wire.StagingClusters, cluster)
	if err := f.MkdirAll(dfs.Dir(name)); err != nil {
		return "", "", fmt.Errorf("prepare staging directory: %w", err)
	}
	w, err := f.Create(name)
	if err != nil {
		return "", "", fmt.Errorf("prepare staging directory: %w", err)
	}
	if _, err := w.Write([]byte(nonce)); err != nil {
		w.Abort()
		return "", "", fmt.Errorf("prepare staging directory: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", "", fmt.Errorf("prepare staging directory: %w", err)
	}
	return cluster, nonce, nil
}
