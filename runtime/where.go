package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quernmr/quern/dfs"
)

// maxNodes limits the recorded nodes of a split. The nodes with the largest parts stay.
const maxNodes = 64

// node is a machine, or one of several DataNodes on it, that stores part of a split.
type node struct {
	Host, Rack string
	Addr       string // as in dfs.Read
}

// locate returns the blocks of an input's files, if the file system knows where they are. It
// sends one request per directory.
func locate(f dfs.FS, files []dfs.Info) (map[string][]dfs.Block, error) {
	locator, ok := f.(dfs.Locator)
	if !ok {
		return nil, nil
	}
	names := make(map[string][]string) // of files, by directory
	for _, info := range files {
		if info.Size > 0 {
			dir := dfs.Dir(info.Name)
			names[dir] = append(names[dir], info.Name)
		}
	}
	blocks := make(map[string][]dfs.Block)
	for _, dir := range slices.Sorted(maps.Keys(names)) {
		if len(names[dir]) == 1 {
			dir = names[dir][0]
		}
		located, err := locator.Locate(dir)
		if err != nil {
			return nil, inputError(fmt.Errorf("locate blocks: %w", err))
		}
		for _, file := range located {
			blocks[file.Name] = file.Blocks
		}
	}
	return blocks, nil
}

// nodesOf returns the nodes that store blocks, each once.
func nodesOf(blocks []dfs.Block) (nodes []node) {
	for _, b := range blocks {
		for _, r := range b.Replicas {
			if n := (node{Host: r.Host, Rack: r.Rack, Addr: r.Addr}); !slices.Contains(nodes, n) {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// nodeBytes is the number of a split's bytes on a node.
type nodeBytes struct {
	node
	bytes int64
}

// findNodes finds the nodes of a split in the blocks of its files. It
// sorts them by the split's bytes that they store. A node is preferred if it stores at least half
// as many as the node with most.
func (e *splitEntry) findNodes(blocks map[string][]dfs.Block) {
	var shares []nodeBytes
	index := make(map[node]int)
	for _, c := range e.Chunks {
		file := blocks[c.Path]
		first, _ := slices.BinarySearchFunc(file, c.Offset, func(b dfs.Block, at int64) int {
			return cmp.Compare(b.Offset+b.Length, at+1)
		})
		for _, b := range file[first:] {
			overlap := min(b.Offset+b.Length, c.Offset+c.Length) - max(b.Offset, c.Offset)
			if overlap <= 0 {
				break
			}
			for _, r := range b.Replicas {
				n := node{Host: r.Host, Rack: r.Rack, Addr: r.Addr}
				i, ok := index[n]
				if !ok {
					i = len(shares)
					index[n] = i
					shares = append(shares, nodeBytes{node: n})
				}
				shares[i].bytes += overlap
			}
		}
	}
	slices.SortStableFunc(shares, func(a, b nodeBytes) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Addr, b.Addr))
	})
	e.Preferred, e.Nodes = 0, nil
	for _, s := range shares[:min(len(shares), maxNodes)] {
		if e.Nodes = append(e.Nodes, s.node); s.bytes >= (shares[0].bytes+1)/2 {
			e.Preferred++
		}
	}
}

// info returns the data for scheduling.
func (e *splitEntry) info() SplitInfo {
	info := SplitInfo{Length: e.length()}
	for _, n := range e.Nodes[:e.Preferred] {
		if slices.Contains(info.Hosts, n.Host) {
			continue
		}
		info.Hosts = append(info.Hosts, n.Host)
		info.Racks = append(info.Racks, n.Rack)
	}
	return info
}
