package jobtracker

import (
	"crypto/sha256"
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
	epoch   uint64 // of the office in which the core was told
	hash    [sha256.Size]byte
	table   pool.Table
	trouble string // why it could not be used
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

// lookAtPools reads the file, small as it is, each time: neither its size nor its time
// need differ when it has changed.
func (s *Server) lookAtPools(f *poolsFile, epoch uint64) {
	var hash [sha256.Size]byte // of a file that cannot be read none
	data, err := readPools(s.cfg.FS, s.cfg.Pools)
	if err == nil {
		hash = sha256.Sum256(data)
		if f.epoch == epoch && f.hash == hash {
			return
		}
	}
	var table pool.Table
	if err == nil {
		table, err = pool.Parse(strings.TrimPrefix(s.cfg.Pools, "file://"), data)
	}
	news := f.epoch != epoch
	f.epoch, f.hash = epoch, hash
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
	f.table, f.trouble = table, ""
	s.post(func() { s.step(core.Pools{Table: table}) })
}

func readPools(f dfs.FS, name string) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxPoolsFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case len(data) > maxPoolsFile:
		return nil, fmt.Errorf("%s: longer than %d bytes", name, maxPoolsFile)
	}
	return data, nil
}
