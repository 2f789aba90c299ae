package runtime

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quernmr/quern/dfs"
)

// maxNodes bounds the replicas of a split that are told, those with most of it.
const maxNodes = 64

// node is a machine, or one of several stores on it, that keeps some of a split.
type node struct {
	Host, Rack string
	Addr       string // as in dfs.Read
}

// locate notes in an input's splits where they are kept, if the file system
// knows. Of each directory it asks once.
func locate(f dfs.FS, splits []splitEntry) error {
	locator, ok := f.(dfs.Locator)
	if !ok {
		return nil
	}
	names := make(map[string][]string) // of files, by directory
	for i := range splits {
		for _, c := range splits[i].Chunks {
			dir := dfs.Dir(c.Path)
			if of := names[dir]; len(of) == 0 || len(of) == 1 && of[0] != c.Path {
				names[dir] = append(of, c.Path)
			}
		}
	}
	blocks := make(map[string][]dfs.Block)
	for _, dir := range slices.Sorted(maps.Keys(names)) {
		of := names[dir]
		if len(of) == 1 {
			dir = of[0]
		}
		files, err := locator.Locate(dir)
		if err != nil {
			return inputError(fmt.Errorf("ask where it is kept: %w", err))
		}
		for _, file := range files {
			blocks[file.Name] = file.Blocks
		}
	}
	for i := range splits {
		splits[i].place(blocks)
	}
	return nil
}

// share is how many bytes of a split a node keeps.
type share struct {
	node
	bytes int64
}

// place finds the nodes of a split among the blocks of files. Near are those that
// keep at least half as much of it as the one that keeps most.
func (e *splitEntry) place(blocks map[string][]dfs.Block) {
	var shares []share
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
					shares = append(shares, share{node: n})
				}
				shares[i].bytes += overlap
			}
		}
	}
	slices.SortStableFunc(shares, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Addr, b.Addr))
	})
	e.Near, e.Nodes = 0, nil
	for _, s := range shares[:min(len(shares), maxNodes)] {
		if e.Nodes = append(e.Nodes, s.node); s.bytes >= (shares[0].bytes+1)/2 {
			e.Near++
		}
	}
}

// info is what scheduling needs to know.
func (e *splitEntry) info() SplitInfo {
	info := SplitInfo{Length: e.length()}
	for _, n := range e.Nodes[:e.Near] {
		if slices.Contains(info.Hosts, n.Host) {
			continue
		}
		info.Hosts = append(info.Hosts, n.Host)
		info.Racks = append(info.Racks, n.Rack)
	}
	return info
}
