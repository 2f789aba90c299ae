package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/quernmr/quern/wire"
)

// Verify reads a whole segment file, checks all its checksums and returns its index. Damage
// is a [CorruptError].
func Verify(ctx context.Context, file string) (*Index, error) {
	f, err := OpenFile(file)
	if err != nil {
		return nil, fmt.Errorf("verify segment file: %w", err)
	}
	defer f.Close()
	index, err := readIndex(f)
	if err != nil {
		return nil, err
	}
	r := &blockReader{ctx: ctx}
	for _, p := range index.Partitions {
		*r = blockReader{
			ctx: ctx, seg: wire.Segment{Map: -1, File: file, Offset: p.Offset, Length: p.Length},
			in: &fileInput{file: f, base: p.Offset}, size: p.Length, buf: r.buf,
		}
		if err := r.verifyAll(); err != nil {
			return nil, err
		}
	}
	return index, nil
}

// verifyAll reads all blocks.
func (r *blockReader) verifyAll() error {
	var big []byte
	for {
		_, err := r.wholeBlock(&big)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
