package runtime

import (
	"cmp"
	"maps"
	"slices"
)

// smallFile is a file that one map reads together with others.
type smallFile struct {
	index  int   // in the input's list
	weight int64 // at least its size
	limit  int64 // of the weights of a split with it
	chunk  Chunk
	nodes  []node // that store it; nil: not known
}

// combine packs small files into splits. Files of one node come together as long as they fill splits, then the rest
// of each rack, then what remains. Nodes get splits by turns, so no node has all files that it shares with others.
// Files keep their order within a split, and splits are in the order of their first files.
func combine(files []smallFile) [][]smallFile {
	var packs [][]smallFile
	for _, place := range []func(node) string{
		func(n node) string { return n.Host },
		func(n node) string { return n.Rack },
	} {
		var full [][]smallFile
		full, files = packByPlace(files, place)
		packs = append(packs, full...)
	}
	for len(files) > 0 {
		n, _ := fill(files)
		packs, files = append(packs, files[:n]), files[n:]
	}
	slices.SortFunc(packs, func(a, b []smallFile) int { return cmp.Compare(a[0].index, b[0].index) })
	return packs
}

// packByPlace returns full splits with files that share a place, and the other files.
func packByPlace(files []smallFile, place func(node) string) (full [][]smallFile, rest []smallFile) {
	at := make(map[string][]smallFile)
	for _, f := range files {
		for _, n := range f.nodes {
			p := place(n)
			if list := at[p]; p != "" && (len(list) == 0 || list[len(list)-1].index != f.index) { // nodes may share a place
				at[p] = append(list, f)
			}
		}
	}
	taken := make(map[int]bool)
	for places := slices.Sorted(maps.Keys(at)); len(places) > 0; {
		places = slices.DeleteFunc(places, func(p string) bool {
			at[p] = slices.DeleteFunc(at[p], func(f smallFile) bool { return taken[f.index] })
			n, enough := fill(at[p])
			if !enough {
				return true
			}
			full = append(full, slices.Clone(at[p][:n]))
			for _, f := range at[p][:n] {
				taken[f.index] = true
			}
			return false
		})
	}
	return full, slices.DeleteFunc(slices.Clone(files), func(f smallFile) bool { return taken[f.index] })
}

// fill returns how many of the first files fit into one split, and whether they fill it.
func fill(files []smallFile) (n int, enough bool) {
	weight := int64(0)
	for i, f := range files {
		if weight += f.weight; i > 0 && weight > f.limit || i == maxChunks {
			return i, true
		}
		enough = weight >= f.limit
	}
	return len(files), enough
}
