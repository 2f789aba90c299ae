package mapreduce

import (
	"io"
	"iter"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
)

// KeyFile is a format of files with sorted keys, the first ones of all partitions but the first. Package
// formats/sequence has the format of Hadoop's partition files. Read marks errors of the content with [BadInput].
type KeyFile[K any] interface {
	Read(file io.ReaderAt, size int64) iter.Seq2[K, error]
	Write(w io.Writer, keys []K) error
}

// TotalOrderBy is [Pairs.TotalOrder], with ranges that a file can have. The property
// mapreduce.totalorderpartitioner.path names a file with the ranges. The property quern.totalorder.path names a
// file that the job makes with the ranges of its sample.
func (p *Pairs[K, V]) TotalOrderBy(f KeyFile[K]) *Pairs[K, V] {
	if f == nil {
		p.misuse("TotalOrderBy: the format of files is nil")
	}
	p.keyFile = f
	return p.TotalOrder()
}

// rangesProperty returns the one of the two properties that is set.
func rangesProperty(properties map[string]string) string {
	for _, name := range []string{property.Ranges, property.RangesOut} {
		if properties[name] != "" {
			return name
		}
	}
	return ""
}

// ranges encodes the keys of key files; nil: the pairs have no format of them.
func (p shaped[K, V]) ranges() *mrruntime.Ranges {
	if p.keyFile == nil {
		return nil
	}
	return &mrruntime.Ranges{
		Read: func(file io.ReaderAt, size int64) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				c := p.shape.key()
				for key, err := range p.keyFile.Read(file, size) {
					var cut []byte
					if err == nil {
						cut = c.encode(&cut, key)
					}
					if !yield(cut, err) {
						return
					}
				}
			}
		},
		Write: func(w io.Writer, cuts [][]byte) error {
			c, keys := p.shape.key(), make([]K, len(cuts))
			for i, cut := range cuts {
				var err error
				if keys[i], err = read(c, &decoder{}, cut); err != nil {
					return err
				}
			}
			return p.keyFile.Write(w, keys)
		},
	}
}
