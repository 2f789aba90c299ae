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

// maxPoolsFile is the maximum size of an allocation file in bytes.
const maxPoolsFile = 1 << 20

// poolsFile is the allocation file as last read.
type poolsFile struct {
	epoch   uint64 // of the leader that has sent it to its core
	hash    [sha256.Size]byte
	table   pool.Table
	errText string // of the last read; empty: none
}

// watchPools sends the pools to the core after each election and each change of the file.
func (s *Server) watchPools() {
	tick := time.NewTicker(s.cfg.PoolsEvery)
	defer tick.Stop()
	var f poolsFile
	for {
		if l := s.Leadership(); l.Leads {
			s.checkPools(&f, l.Epoch)
		}
		select {
		case <-tick.C:
		case <-s.elected:
		case <-s.done:
			return
		}
	}
}

// checkPools sends the core the pools if the file or the epoch has changed. It reads the whole file
// each time, since a changed file may have the same size and time.
func (s *Server) checkPools(f *poolsFile, epoch uint64) {
	var hash [sha256.Size]byte // zero: the file cannot be read
	data, err := readPools(s.cfg.FS, s.cfg.Pools)
	if err == nil {
		hash = sha256.Sum256(data)
		if f.epoch == epoch && f.hash == hash {
			return
		}
	}
	var table pool.Table
	if err == nil {
		table, err = pool.Parse(strings.TrimPrefix(s.cfg.Pools, "file://"), data, s.cfg.PoolsIgnore...)
	}
	if !s.cfg.Groups {
		table = table.WithoutGroups()
	}
	newEpoch := f.epoch != epoch
	f.epoch, f.hash = epoch, hash
	if err != nil {
		if newEpoch || f.errText != err.Error() {
			s.cfg.Logger.Warn("the pools stay as they are", "error", err)
		}
		f.errText = err.Error()
		s.post(func() { s.step(core.PoolsRead{Err: err}) })
		return
	}
	if newEpoch || f.errText != "" || !reflect.DeepEqual(f.table, table) {
		s.cfg.Logger.Info("pools", "file", table.From, "pools", len(table.Pools))
		for _, w := range table.Warnings {
			s.cfg.Logger.Warn("pools", "warning", w)
		}
	}
	f.table, f.errText = table, ""
	s.post(func() { s.step(core.PoolsRead{Table: table}) })
}

// CheckPools fails if an allocation file can be read but is not valid.
func CheckPools(f dfs.FS, name string, ignore []string) error {
	data, err := readPools(f, name)
	if err != nil {
		return nil // it may come later
	}
	_, err = pool.Parse(strings.TrimPrefix(name, "file://"), data, ignore...)
	return err
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
