package runtime

import (
	"maps"
	"slices"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// FormatCombined is the format of Hadoop's CombineTextInputFormat: text, with small files and blocks combined.
const FormatCombined = "combinedtext"

// anyRack is the rack of files if the file system does not know their nodes.
const anyRack = "/default-rack"

// combined is a Format with the splits of Hadoop's CombineFileInputFormat. A split takes pieces until it has
// at least [SplitMaxSize] bytes: first those of a node, node by node, then those of a rack, then the rest. Without
// that property one split has everything. Hadoop takes the nodes in the order of a hash table, we in that of their names.
type combined struct{ sized }

// combinedPiece is what splits are made of: a block of a file, or a part of a block that is larger than a split.
type combinedPiece struct {
	chunk        Chunk
	hosts, racks []string
	taken        bool
}

func (f combined) Splits(_ *wire.InputPlan, files []File) ([][]Chunk, error) {
	var all []*combinedPiece
	most := int64(0)
	for i := range files {
		all, most = append(all, f.pieces(&files[i])...), files[i].splitMax
		if len(all) > maxSplits {
			return nil, errManySplits
		}
	}
	splits := takeByHost(all, most)
	ofRacks, rest := takeByRack(all, most)
	splits = append(splits, ofRacks...)
	for len(rest) > 0 {
		n, _ := reach(rest, most)
		splits, rest = append(splits, chunksOf(rest[:n])), rest[n:]
	}
	longestFirst(splits)
	return splits, nil
}

// pieces cuts a file at its blocks, and blocks at the size of a split. The last two pieces of a block are of equal size.
func (f combined) pieces(file *File) (pieces []*combinedPiece) {
	blocks := file.blocks
	if blocks == nil && file.Size > 0 {
		blocks = []dfs.Block{{Length: file.Size, Replicas: []dfs.Replica{{Host: "localhost", Rack: anyRack}}}}
	}
	if len(blocks) == 0 || f.uncut(file.Path) {
		whole := dfs.Block{Length: file.Size}
		if len(blocks) > 0 {
			whole.Replicas = blocks[0].Replicas
		}
		return []*combinedPiece{combinedPieceOf(file, whole, 0, file.Size)}
	}
	for _, b := range blocks {
		for at := int64(0); at < b.Length && len(pieces) <= maxSplits; {
			n := min(b.Length-at, file.splitMax)
			if left := b.Length - at; left > n && left-n < n {
				n = left / 2
			}
			pieces = append(pieces, combinedPieceOf(file, b, at, n))
			at += n
		}
	}
	return pieces
}

func combinedPieceOf(file *File, b dfs.Block, at, length int64) *combinedPiece {
	p := &combinedPiece{chunk: file.piece(b.Offset+at, length)}
	for _, r := range b.Replicas {
		p.hosts, p.racks = append(p.hosts, r.Host), append(p.racks, r.Rack)
	}
	if len(p.racks) == 0 {
		p.racks = []string{anyRack}
	}
	return p
}

// takeByHost returns the full splits of pieces that one host stores. Hosts get them by turns.
func takeByHost(all []*combinedPiece, most int64) (splits [][]Chunk) {
	at := byPlace(all, func(p *combinedPiece) []string { return p.hosts })
	for hosts := slices.Sorted(maps.Keys(at)); len(hosts) > 0; {
		hosts = slices.DeleteFunc(hosts, func(host string) bool {
			at[host] = slices.DeleteFunc(at[host], func(p *combinedPiece) bool { return p.taken })
			n, full := reach(at[host], most)
			if full {
				splits = append(splits, take(at[host][:n]))
			}
			return !full
		})
	}
	return splits
}

// takeByRack returns the full splits of pieces that one rack stores, and the other pieces, rack by rack.
func takeByRack(all []*combinedPiece, most int64) (splits [][]Chunk, rest []*combinedPiece) {
	at := byPlace(all, func(p *combinedPiece) []string { return p.racks })
	for racks := slices.Sorted(maps.Keys(at)); len(racks) > 0; {
		racks = slices.DeleteFunc(racks, func(rack string) bool {
			at[rack] = slices.DeleteFunc(at[rack], func(p *combinedPiece) bool { return p.taken })
			n, full := reach(at[rack], most)
			split := take(at[rack][:n])
			if full {
				splits = append(splits, split)
			} else {
				rest = append(rest, at[rack]...)
			}
			return !full
		})
	}
	return splits, rest
}

// byPlace returns the pieces that are not taken yet, by the hosts or racks that store them.
func byPlace(all []*combinedPiece, places func(*combinedPiece) []string) map[string][]*combinedPiece {
	at := make(map[string][]*combinedPiece)
	for _, p := range all {
		for i, place := range places(p) {
			if !p.taken && !slices.Contains(places(p)[:i], place) {
				at[place] = append(at[place], p)
			}
		}
	}
	return at
}

// reach returns the number of the first pieces with at least most bytes, and whether there are so many.
func reach(pieces []*combinedPiece, most int64) (n int, full bool) {
	size := int64(0)
	for i, p := range pieces {
		if size += p.chunk.Length; size >= most || i+1 == maxChunks {
			return i + 1, true
		}
	}
	return len(pieces), false
}

func take(pieces []*combinedPiece) []Chunk {
	for _, p := range pieces {
		p.taken = true
	}
	return chunksOf(pieces)
}

func chunksOf(pieces []*combinedPiece) (chunks []Chunk) {
	for _, p := range pieces {
		chunks = append(chunks, p.chunk)
	}
	return chunks
}
