package hdfs

import (
	"fmt"
	"slices"
	"strings"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
)

// Locate requests a listing with locations. A page has several hundred files, with any
// number of blocks.
func (f *FS) Locate(name string) ([]dfs.Located, error) {
	c, path, name, err := f.resolve("locate", name)
	if err != nil {
		return nil, err
	}
	all, err := c.listing(path, true)
	if err != nil {
		return nil, failure("locate", name, err)
	}
	located := make([]dfs.Located, len(all))
	for i, s := range all {
		entry := name
		if !isFile(all) {
			entry = dfs.Join(name, string(s.GetPath()))
		}
		located[i] = dfs.Located{Info: describe(entry, s), Blocks: c.blocks(s)}
	}
	slices.SortFunc(located, func(a, b dfs.Located) int { return strings.Compare(a.Name, b.Name) })
	return located, nil
}

func (c *cluster) blocks(s *client.FileStatus) []dfs.Block {
	list := s.GetLocations().GetBlocks()
	blocks := make([]dfs.Block, len(list))
	for i, b := range list {
		blocks[i] = dfs.Block{Offset: int64(b.GetOffset()), Length: int64(b.GetB().GetNumBytes())}
		if b.GetCorrupt() {
			continue // all its replicas are corrupt
		}
		for _, at := range b.GetLocs() {
			id := at.GetId()
			addr := id.GetIpAddr()
			if c.byName {
				addr = id.GetHostName()
			}
			blocks[i].Replicas = append(blocks[i].Replicas, dfs.Replica{Host: id.GetHostName(),
				Addr: fmt.Sprintf("%s:%d", addr, id.GetXferPort()), Rack: at.GetLocation()})
		}
	}
	return blocks
}
