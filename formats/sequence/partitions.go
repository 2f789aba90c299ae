package sequence

import (
	"crypto/md5"
	"fmt"
	"io"
	"iter"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/sequencefile"
	"github.com/quernmr/quern/sequencefile/writable"
)

// Partitions returns the format of the partition files of Hadoop's TotalOrderPartitioner, for
// [mapreduce.Pairs.TotalOrderBy]: SequenceFiles with keys of a class and values NullWritable.
func Partitions[K any](key writable.Class[K]) mapreduce.KeyFile[K] { return partitions[K]{key} }

type partitions[K any] struct{ key writable.Class[K] }

func (p partitions[K]) Read(file io.ReaderAt, size int64) iter.Seq2[K, error] {
	return func(yield func(K, error) bool) {
		for record, err := range records(mapreduce.Split{Length: size, Size: size}, file, p.key.Name, writable.Null.Name) {
			var pair mapreduce.Pair[K, struct{}]
			if err == nil {
				pair, err = decode(p.key, writable.Null, record)
			}
			if !yield(pair.A, err) || err != nil {
				return
			}
		}
	}
}

// Write writes the same bytes for the same keys: the sync mark is a digest of them.
func (p partitions[K]) Write(w io.Writer, keys []K) error {
	encoded, digest := make([][]byte, len(keys)), md5.New()
	for i, k := range keys {
		var err error
		if encoded[i], err = p.key.Append(nil, k); err != nil {
			return fmt.Errorf("key as %s: %w", p.key.Name, err)
		}
		digest.Write(encoded[i])
	}
	file, err := sequencefile.NewWriter(w, sequencefile.Options{
		Header: sequencefile.Header{KeyClass: p.key.Name, ValueClass: writable.Null.Name}, Sync: [16]byte(digest.Sum(nil))})
	if err != nil {
		return err
	}
	for _, key := range encoded {
		if err := file.Append(key, nil); err != nil {
			return err
		}
	}
	return file.Close()
}
