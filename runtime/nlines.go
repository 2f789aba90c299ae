package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// counted is the Format of lines in splits of a number of lines. Setup reads all files to find them.
type counted struct{ sized }

func (counted) CheckFile(file dfs.Info) error {
	if codec := compression.OfFile(file.Name); codec != nil {
		return fmt.Errorf("%w: %s is %s by its name, and NLines reads only plain files, because it cuts them at lines; read it with Lines, or unpack it",
			ErrInput, file.Name, codec.Content)
	}
	return checkPacking(file, false)
}

func (f counted) Splits(_ *wire.InputPlan, files []File) (splits [][]Chunk, err error) {
	for i := range files {
		if files[i].Size == 0 {
			continue
		}
		if splits, err = cutAtLines(splits, &files[i]); err != nil {
			return nil, fmt.Errorf("count the lines of %s: %w", files[i].Path, err)
		}
	}
	return splits, nil
}

// cutAtLines appends the splits of a file. Each begins with a line, so its reader skips nothing.
func cutAtLines(splits [][]Chunk, file *File) (_ [][]Chunk, err error) {
	in, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	lines, from, block := int64(0), int64(0), make([]byte, blockSize)
	for base := int64(0); base < file.Size; {
		n, err := in.ReadAt(block[:min(blockSize, file.Size-base)], base)
		if n == 0 && err != nil {
			if err == io.EOF {
				err = ErrTruncated
			}
			return nil, err
		}
		for i := 0; ; i++ {
			next := bytes.IndexByte(block[i:n], '\n')
			if next < 0 {
				break
			}
			i += next
			if lines++; lines%file.lines != 0 || base+int64(i)+1 == file.Size {
				continue
			}
			end := base + int64(i) + 1
			splits = append(splits, []Chunk{file.piece(from, end-from)})
			if from = end; len(splits) > maxSplits {
				return nil, Fatal(fmt.Errorf("more than %d splits; make %s larger", maxSplits, LinesPerMap))
			}
		}
		base += int64(n)
	}
	return append(splits, []Chunk{file.piece(from, file.Size-from)}), nil
}
