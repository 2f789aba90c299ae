package runtime

import (
	"fmt"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Input formats that this package reads; any other name is of the author's own.
const (
	formatLines     = "lines"
	formatKeyValues = "keyvalues"
	formatRecords   = "records"
	formatFiles     = "files"
	formatBinary    = "binary"
)

const (
	// splitSlop lets the last split of a file be this much longer than the others.
	splitSlop = 1.1
	// openCost is the least a file weighs when files are packed into a split:
	// opening one costs about as much as reading this many bytes.
	openCost = 64 << 10
	// maxSplits bounds the maps of a job.
	maxSplits = 1 << 20
	// maxChunks bounds the files of a split, whatever its size.
	maxChunks = 10_000
)

// Chunk is a piece of one file.
type Chunk struct {
	Path           string
	Offset, Length int64
	Size           int64 // of the whole file, when the splits were computed
	Modified       int64 // when the file was, Unix nanoseconds; 0: not known
}

// splitEntry is one split of the splits file.
type splitEntry struct {
	Input  int
	Nodes  []node // that keep it, those with most first; nil: not known
	Near   int    // of Nodes: those near which it should run
	Chunks []Chunk
}

func (e *splitEntry) length() (n int64) {
	for _, c := range e.Chunks {
		n += c.Length
	}
	return n
}

// planSplits cuts one input's files into splits, in their order. Files are packed
// into one split up to the split size; a piece of a longer file is a split alone, and so
// is a compressed file, whose size says little of its content.
func planSplits(input int, in *wire.InputPlan, files []dfs.Info, s settings) ([]splitEntry, error) {
	var splits []splitEntry
	var packed splitEntry
	var weight int64
	flush := func() {
		if len(packed.Chunks) > 0 {
			splits = append(splits, packed)
		}
		packed, weight = splitEntry{Input: input}, 0
	}
	flush()
	for _, info := range files {
		alone := compressed(in.Format, info.Name) != ""
		if info.Size == 0 && in.Format != formatFiles { // an empty file is a record of that format
			continue
		}
		size := splitSize(in, info, s)
		chunks := cutFile(in, info, size)
		if len(chunks) > 1 || alone {
			flush()
			for _, c := range chunks {
				splits = append(splits, splitEntry{Input: input, Chunks: []Chunk{c}})
			}
		} else {
			w := max(info.Size, min(openCost, size))
			if weight > 0 && weight+w > size || len(packed.Chunks) >= maxChunks {
				flush()
			}
			packed.Chunks = append(packed.Chunks, chunks...)
			weight += w
		}
		if len(splits) > maxSplits {
			return nil, Fatal(fmt.Errorf("more than %d splits; make %s larger", maxSplits, SplitMaxSize))
		}
	}
	flush()
	return splits, nil
}

// splitSize is Hadoop's: the block size within the two bounds; then rounded to
// whole records where their size is fixed, to about whole blocks in a binary file.
func splitSize(in *wire.InputPlan, info dfs.Info, s settings) int64 {
	size := max(s.splitMin, min(s.splitMax, info.BlockSize), 1)
	unit := int64(1)
	switch in.Format {
	case formatRecords:
		unit = int64(max(in.RecordSize, 1))
	case formatBinary:
		unit = binaryUnit
	}
	return max(size/unit, 1) * unit
}

func cutFile(in *wire.InputPlan, info dfs.Info, size int64) []Chunk {
	whole := Chunk{Path: info.Name, Length: info.Size, Size: info.Size, Modified: info.Modified.UnixNano()}
	if in.Format == formatFiles || compressed(in.Format, info.Name) != "" {
		return []Chunk{whole}
	}
	var chunks []Chunk
	left := info.Size
	for float64(left)/float64(size) > splitSlop && len(chunks) <= maxSplits {
		chunks = append(chunks, Chunk{Path: info.Name, Offset: info.Size - left, Length: size, Size: info.Size, Modified: info.Modified.UnixNano()})
		left -= size
	}
	return append(chunks, Chunk{Path: info.Name, Offset: info.Size - left, Length: left, Size: info.Size, Modified: info.Modified.UnixNano()})
}

// jobSplits computes the splits of a whole job. Each is called for each input.
func jobSplits(f dfs.FS, sub *wire.Submission, index int, id wire.JobID, s settings, each func() error) ([]splitEntry, error) {
	job := &sub.Plan.Jobs[index]
	var all []splitEntry
	for i := range job.Inputs {
		in := &job.Inputs[i]
		var files []dfs.Info
		var err error
		if in.From > 0 {
			before := wire.JobID{Start: id.Start, N: id.N - index + in.From - 1} // numbered in the plan's order
			files, err = partFiles(f, sub, in.From-1, before)
		} else if files, err = inputFiles(f, in, s); err == nil {
			err = checkReadable(f, files)
		}
		if err != nil {
			return nil, err
		}
		if err := each(); err != nil {
			return nil, err
		}
		more, err := planSplits(i, in, files, s)
		if err != nil {
			return nil, err
		}
		if err := locate(f, more); err != nil {
			return nil, err
		}
		if all = append(all, more...); len(all) > maxSplits {
			return nil, Fatal(fmt.Errorf("more than %d splits; make %s larger", maxSplits, SplitMaxSize))
		}
	}
	return all, nil
}
