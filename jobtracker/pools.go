package jobtracker

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/scheduler/pool"
)

// maxPoolsFile is how many bytes of an allocation file are read.
const maxPoolsFile = 1 << 20

// poolsFile is what is known of the allocation file.
type poolsFile struct {
	epoch    uint64 // of the office in which the core was told
	size     int64
	modified time.Time
	table    pool.Table
	trouble  string // why it could not be used
}

// watchPools tells the core what the allocation file holds, whenever this job
// tracker has come into office or the file has changed.
func (s *Server) watchPools() {
	tick := time.NewTicker(s.cfg.PoolsEvery)
	defer tick.Stop()
	var f poolsFile
	for {
		if epoch := s.office.Load(); epoch != 0 {
			s.lookAtPools(&f, epoch)
		}
		select {
		case <-tick.C:
		case <-s.inOffice:
		case <-s.done:
			return
		}
	}
}

func (s *Server) lookAtPools(f *poolsFile, epoch uint64) {
	info, err := s.cfg.FS.Stat(s.cfg.Pools)
	if err == nil && f.epoch == epoch && f.trouble == "" && f.size == info.Size && f.modified.Equal(info.Modified) {
		return
	}
	var table pool.Table
	if err == nil {
		table, err = readPools(s.cfg.FS, s.cfg.Pools)
	}
	news := f.epoch != epoch
	f.epoch = epoch
	if err != nil {
		if news || f.trouble != err.Error() {
			s.cfg.Logger.Warn("the pools stay as they are", "error", err)
		}
		f.trouble = err.Error()
		s.post(func() { s.step(core.Pools{Err: err}) })
		return
	}
	if news || f.trouble != "" || !reflect.DeepEqual(f.table, table) {
		s.cfg.Logger.Info("pools", "file", table.From, "pools", len(table.Pools))
		for _, w := range table.Warnings {
			s.cfg.Logger.Warn("pools", "warning", w)
		}
	}
	f.size, f.modified, f.table, f.trouble = info.Size, info.Modified, table, ""
	if time.Since(info.Modified) < coarseTime {
		f.size = -1 // it may change again without looking changed
	}
	s.post(func() { s.step(core.Pools{Table: table}) })
}

// coarseTime is more than what file systems round times of changes to.
const coarseTime = 3 * time.Second

func readPools(f dfs.FS, name string) (pool.Table, error) {
	file, err := f.Open(name)
	if err != nil {
		return pool.Table{}, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPoolsFile+1))
	switch {
	case err != nil:
		return pool.Table{}, fmt.Errorf("read %s: %w", name, err)
	case len(data) > maxPoolsFile:
		return pool.Table{}, fmt.Errorf("%s: longer than %d bytes", name, maxPoolsFile)
	}
	return pool.Parse(strings.TrimPrefix(name, "file://"), data)
}
