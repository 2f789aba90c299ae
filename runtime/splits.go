package runtime

import (
	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

const (
	// splitSlop lets the last split of a file exceed the split size by this factor.
	splitSlop = 1.1
	// openCost is the minimum weight of a file that is packed into a split: opening a file
	// costs about as much as reading this many bytes.
	openCost = 64 << 10
	// maxSplits limits the maps of a job.
	maxSplits = 1 << 20
	// maxChunks limits the files of a split.
	maxChunks = 10_000
)

// Chunk is a piece of one file.
type Chunk struct {
	Path           string
	Offset, Length int64
	Size           int64 // of the whole file, when the splits were computed
	Modified       int64 // modification time at that time, Unix nanoseconds; 0: not known
}

// splitEntry is one split of the splits file.
type splitEntry struct {
	Input     int
	Nodes     []node // nodes that store parts of it, the largest part first; nil: not known
	Preferred int    // the first Preferred nodes are preferred nodes
	Chunks    []Chunk
}

func (e *splitEntry) length() int64 { return totalOf(e.Chunks) }

// planSplits cuts one input's files into splits, in order. blocks has the blocks of located files; nil: not known.
// open opens a chunk of a file.
func planSplits(input int, in *wire.InputPlan, format Format, files []dfs.Info, s settings, blocks map[string][]dfs.Block, open func(Chunk) (ReadAtCloser, error)) ([]splitEntry, error) {
	listed := make([]File, len(files))
	for i, info := range files {
		listed[i] = File{Path: info.Name, Size: info.Size, info: info, lines: s.linesPerMap, splitMax: s.splitMax, blocks: blocks[info.Name], open: open,
			SplitSize: max(s.splitMin, min(s.splitMax, info.BlockSize), 1)} // as in Hadoop
		if compression.OfFile(info.Name) != nil && overlaps(s.delimiter) {
			listed[i].SplitSize = info.Size // the content before a split, on which its first delimiter depends, is not known
		}
	}
	cut, err := format.Splits(in, listed)
	if err != nil {
		return nil, err
	}
	splits := make([]splitEntry, len(cut))
	for i := range cut {
		splits[i] = splitEntry{Input: input, Chunks: cut[i]}
		splits[i].findNodes(blocks)
	}
	return splits, nil
}

// partsOf lists the main output of an earlier job of the flow; from is as in wire.InputPlan.
func (a *attempt) partsOf(from int) ([]dfs.Info, error) {
	id := a.id().Task.Job
	earlier := wire.JobID{Start: id.Start, N: id.N - a.cmd.Index + from - 1} // ids of a flow's jobs have the plan's order
	return partFiles(a.fs, a.sub, from-1, earlier)
}

// jobSplits computes the splits of the whole job.
func (a *attempt) jobSplits() ([]splitEntry, error) {
	job := a.plan()
	opener := newSplit(a.task.Ctx, a.fs, splitEntry{}, nil, a.settings, &a.task.pulse)
	var all []splitEntry
	for i := range job.Inputs {
		in, format := &job.Inputs[i], a.job.format(i, &job.Inputs[i])
		var files []dfs.Info
		var err error
		if in.From > 0 {
			files, err = a.partsOf(in.From)
		} else if files, err = inputFiles(a.fs, in, format, a.settings); err == nil {
			err = checkReadable(a.fs, files)
		}
		if err != nil {
			return nil, err
		}
		if err := a.alive(); err != nil {
			return nil, err
		}
		blocks, err := locate(a.fs, files)
		if err != nil {
			return nil, err
		}
		more, err := planSplits(i, in, format, files, a.settings, blocks, opener.Open)
		if err != nil {
			return nil, err
		}
		if all = append(all, more...); len(all) > maxSplits {
			return nil, errManySplits
		}
	}
	return all, nil
}
