package jobtracker

import (
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

func readSplits(fs dfs.FS, staging string, job wire.JobID) ([]core.Split, uint64, error) {
	infos, hash, err := runtime.ReadSplits(fs, staging, job)
	if err != nil {
		return nil, 0, err
	}
	splits := make([]core.Split, len(infos))
	for i, info := range infos {
		splits[i] = core.Split{Bytes: info.Length, Hosts: info.Hosts, Racks: info.Racks}
	}
	return splits, hash, nil
}
