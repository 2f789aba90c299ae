package runtime

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

const (
	formatBinary    = "binary"    // of data between jobs of a flow
	formatGenerated = "generated" // of inputs without files
)

// FormatMapred is text in files with the names of Hadoop's older API: part-00000, for maps and reduces.
const FormatMapred = "mapred"

// formats are the built-in input formats by name. Package mapreduce yields their records.
// Any other name is the author's own format; its files are not decompressed.
var formats = map[string]Format{
	"lines":        sized{text: true, decompresses: true, cutsCompressed: true},
	"text":         sized{text: true, decompresses: true, cutsCompressed: true, single: true},
	FormatCombined: combined{sized{text: true, decompresses: true, cutsCompressed: true}},
	"pieces":       sized{sampleBegin: true, single: true}, // the job's own code reads their records
	"keyvalues":    sized{text: true, decompresses: true, cutsCompressed: true},
	"nlines":       counted{sized{text: true, sampleBegin: true}},
	"records":      fixed{sized{decompresses: true}},
	"files":        sized{decompresses: true, whole: true, archives: true},
	"csv":          sized{decompresses: true, whole: true},
	"jsonlines":    sized{decompresses: true, cutsCompressed: true},
	formatBinary:   sized{unit: binaryUnit},

	formatGenerated: generated{},
}

// Format checks the files of an input and cuts them into splits. Reading records is up to
// the job's code, which knows their type.
type Format interface {
	// Check checks an input's description, at the client.
	Check(in *wire.InputPlan, recordMax int) error
	// CheckFile checks a file, in setup, and at the client if the format is built in.
	CheckFile(file dfs.Info) error
	// Splits returns the chunks of each split, in reading order.
	Splits(in *wire.InputPlan, files []File) ([][]Chunk, error)
	// Sample returns pieces of a chunk, each of about length bytes of records, from places in the chunk, which
	// ascend. If it returns nil, the chunk is read from its beginning.
	Sample(in *wire.InputPlan, c Chunk, places []int64, length int64) []Chunk
}

// BuiltIn reports whether a built-in format has this name.
func BuiltIn(name string) bool { return formats[name] != nil }

func formatOf(in *wire.InputPlan) Format {
	if f := formats[in.Format]; f != nil {
		return f
	}
	return own{}
}

// format returns an input's format: from the job's code, else by its name.
func (j *Job) format(input int, in *wire.InputPlan) Format {
	if own := j.Formats[input]; own != nil {
		return own
	}
	return formatOf(in)
}

// File is one of the files of an input.
type File struct {
	Path      string // URL
	Size      int64
	SplitSize int64 // bytes that one map should read, from the file's block size and the split properties

	info     dfs.Info
	lines    int64       // of a split of the format nlines
	splitMax int64       // bytes from which a split of the format combinedtext is full
	blocks   []dfs.Block // nil: not known
	open     func(Chunk) (ReadAtCloser, error)
}

// ReadAtCloser is an open file.
type ReadAtCloser interface {
	io.ReaderAt
	io.Closer
}

// Open opens the file, for instance to read metadata for cutting it.
func (f *File) Open() (ReadAtCloser, error) { return f.open(f.piece(0, f.Size)) }

func (f *File) piece(offset, length int64) Chunk {
	return Chunk{Path: f.Path, Offset: offset, Length: length, Size: f.Size, Modified: f.info.Modified.UnixNano()}
}

// sized is a Format that cuts files by size.
type sized struct {
	text           bool  // records are lines of text
	decompresses   bool  // compressed files are decompressed, by their names
	cutsCompressed bool  // compressed files are cut if their codec allows it
	whole          bool  // files are not cut, and an empty one is a record
	archives       bool  // archives may be read, as they are
	single         bool  // as Hadoop's FileInputFormat: each split is of one file, an empty file too, and the longest split is the first
	unit           int64 // offsets of cuts are multiples of this
	sampleBegin    bool  // a sample of a chunk is its beginning
}

func (f sized) readsText() bool { return f.text }

func (sized) Check(*wire.InputPlan, int) error { return nil }

func (f sized) CheckFile(file dfs.Info) error {
	if !f.decompresses {
		return nil
	}
	return checkPacking(file, f.archives)
}

func (f sized) unitOf(in *wire.InputPlan) int64 { return max(f.unit, int64(in.RecordSize), 1) }

// uncut reports whether a file is always one chunk.
func (f sized) uncut(name string) bool {
	return f.whole || f.packed(name) && !(f.cutsCompressed && compression.OfFile(name).Splits)
}

func (f sized) packed(name string) bool { return f.decompresses && compression.OfFile(name) != nil }

// Splits cuts files in their order. It packs small files into one split, up to the split
// size. Each piece of a longer file is a separate split. So is a compressed file, because
// the size of its content is not known.
//
// Only small files that follow each other share a split, unless the file system knows the
// nodes that store them: then files of one node share it, wherever they are in the list.
func (f sized) Splits(in *wire.InputPlan, files []File) (splits [][]Chunk, err error) {
	if f.single {
		return f.singleSplits(in, files)
	}
	near := slices.ContainsFunc(files, func(file File) bool { return file.blocks != nil })
	var small []smallFile
	flush := func() {
		for _, pack := range combine(small) {
			split := make([]Chunk, len(pack))
			for i := range pack {
				split[i] = pack[i].chunk
			}
			splits = append(splits, split)
		}
		small = nil
	}
	for i := range files {
		file := &files[i]
		if file.Size == 0 && !f.whole {
			continue
		}
		unit := f.unitOf(in)
		size := max(file.SplitSize/unit, 1) * unit
		chunks := f.cut(file, size)
		if len(chunks) == 1 && !f.packed(file.Path) {
			small = append(small, smallFile{index: i, weight: max(file.Size, min(openCost, size)), limit: size, chunk: chunks[0], nodes: nodesOf(file.blocks)})
			continue
		}
		if !near {
			flush()
		}
		for i := range chunks {
			splits = append(splits, chunks[i:i+1:i+1])
		}
		if len(splits) > maxSplits {
			return nil, errManySplits
		}
	}
	if flush(); len(splits) > maxSplits {
		return nil, errManySplits
	}
	return splits, nil
}

// singleSplits gives each piece of a file a split of its own.
func (f sized) singleSplits(in *wire.InputPlan, files []File) (splits [][]Chunk, err error) {
	for i := range files {
		chunks := f.cut(&files[i], max(files[i].SplitSize/f.unitOf(in), 1)*f.unitOf(in))
		for i := range chunks {
			splits = append(splits, chunks[i:i+1:i+1])
		}
		if len(splits) > maxSplits {
			return nil, errManySplits
		}
	}
	longestFirst(splits)
	return splits, nil
}

// longestFirst sorts splits as Hadoop's older API numbers maps.
func longestFirst(splits [][]Chunk) {
	slices.SortStableFunc(splits, func(a, b []Chunk) int { return cmp.Compare(totalOf(b), totalOf(a)) })
}

func totalOf(chunks []Chunk) (n int64) {
	for _, c := range chunks {
		n += c.Length
	}
	return n
}

func (f sized) cut(file *File, size int64) (chunks []Chunk) {
	remaining := file.Size
	for !f.uncut(file.Path) && float64(remaining)/float64(size) > splitSlop && len(chunks) <= maxSplits {
		chunks = append(chunks, file.piece(file.Size-remaining, size))
		remaining -= size
	}
	return append(chunks, file.piece(file.Size-remaining, remaining))
}

func (f sized) Sample(in *wire.InputPlan, c Chunk, places []int64, length int64) []Chunk {
	if f.whole || f.packed(c.Path) {
		return nil
	}
	all, unit := int64(len(places))*length, f.unitOf(in)
	if c.Length <= all {
		return []Chunk{c}
	}
	if f.sampleBegin {
		c.Length = all
		return []Chunk{c}
	}
	length = (length + unit - 1) / unit * unit
	n := int((all + length - 1) / length) // fewer places if pieces are longer
	pieces, end := make([]Chunk, 0, n), int64(0)
	for i := range n {
		at := places[i*len(places)/n]
		piece, from := c, max(at/unit*unit, end)
		piece.Offset += from
		piece.Length = min(length, c.Length-from)
		if end = from + length; piece.Length > 0 {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// Whole returns the Format of an author's own files that are not cut. If decompresses is set, files with a
// codec's suffix are decompressed, by [Split.Stream].
func Whole(decompresses bool) Format {
	return sized{decompresses: decompresses, whole: true, archives: true}
}

// fixed is the Format of fixed-size records.
type fixed struct{ sized }

func (fixed) Check(in *wire.InputPlan, recordMax int) error {
	if in.RecordSize < 1 || in.RecordSize > recordMax {
		return fmt.Errorf("record size %d: want 1 to %d", in.RecordSize, recordMax)
	}
	return nil
}

// generated is the Format of an input without files. The chunk of a split has no path; its offset
// is the number of the split.
type generated struct{}

func (generated) Check(in *wire.InputPlan, _ int) error {
	if in.Splits < 1 || in.Splits > maxSplits {
		return fmt.Errorf("generated input of %d splits: want 1 to %d", in.Splits, maxSplits)
	}
	return nil
}

func (generated) CheckFile(dfs.Info) error { return nil }

func (generated) Splits(in *wire.InputPlan, _ []File) ([][]Chunk, error) {
	splits := make([][]Chunk, min(in.Splits, maxSplits+1))
	for i := range splits {
		splits[i] = []Chunk{{Offset: int64(i)}}
	}
	return splits, nil
}

func (generated) Sample(*wire.InputPlan, Chunk, []int64, int64) []Chunk { return nil }

// own is the Format of an author who reads pieces of files, but leaves cutting to sized. Its sample is read from the
// beginning of a chunk, because a piece of the sample's size may have no record, if records come in large blocks.
type own struct{ sized }

func (own) Sample(*wire.InputPlan, Chunk, []int64, int64) []Chunk { return nil }

// Cut is the Format of an author who cuts files in code. The function returns the chunks
// of each split, with path, offset and length.
type Cut func(files []File) ([][]Chunk, error)

func (Cut) Check(*wire.InputPlan, int) error { return nil }

func (Cut) CheckFile(dfs.Info) error { return nil }

func (Cut) Sample(*wire.InputPlan, Chunk, []int64, int64) []Chunk { return nil }

// Splits calls the author's function and checks its result.
func (cut Cut) Splits(in *wire.InputPlan, files []File) (splits [][]Chunk, err error) {
	err = protect(func() error {
		splits, err = cut(files)
		return err
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("splits of format %s: %w", in.Format, err)
	}
	byPath := make(map[string]*File, len(files))
	for i := range files {
		byPath[files[i].Path] = &files[i]
	}
	for i, split := range splits {
		if len(split) == 0 || len(split) > maxChunks {
			return nil, Fatal(fmt.Errorf("splits of format %s: split %d has %d pieces: want 1 to %d", in.Format, i, len(split), maxChunks))
		}
		for k, c := range split {
			file := byPath[c.Path]
			if file == nil {
				return nil, Fatal(fmt.Errorf("splits of format %s: split %d is of %q, which is no file of the input", in.Format, i, c.Path))
			}
			if c.Offset < 0 || c.Length < 0 || c.Length > file.Size-c.Offset {
				return nil, Fatal(fmt.Errorf("splits of format %s: split %d has %d bytes from offset %d of %s, which has %d", in.Format, i, c.Length, c.Offset, c.Path, file.Size))
			}
			split[k] = file.piece(c.Offset, c.Length)
		}
	}
	return splits, nil
}

var errManySplits = Fatal(fmt.Errorf("more than %d splits; make %s larger", maxSplits, SplitMaxSize))
