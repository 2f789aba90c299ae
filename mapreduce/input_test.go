package mapreduce_test

import (
	"errors"
	"io"
	"iter"
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
	"github.com/quernmr/quern/wire"
)

// masked is a container format. A group is a mask byte and the letters, each XORed with
// it, so no group can be read from its middle. The file's last byte is the group size.
type masked struct{}

func (masked) Name() string { return "masked" }

func (masked) Splits(files []mapreduce.File) (splits [][]mapreduce.Split, err error) {
	var last []mapreduce.Split // a map reads two groups, of one file or two
	for _, f := range files {
		in, err := f.Open()
		if err != nil {
			return nil, err
		}
		var size [1]byte
		_, err = in.ReadAt(size[:], f.Size-1)
		if err := errors.Join(err, in.Close()); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for at := int64(0); at < f.Size-1; at += int64(size[0]) {
			last = append(last, mapreduce.Split{Path: f.Path, Offset: at, Length: int64(size[0])})
			if len(last) == 2 {
				splits, last = append(splits, last), nil
			}
		}
	}
	if last != nil {
		splits = append(splits, last)
	}
	return splits, nil
}

func (masked) Read(s mapreduce.Split, in io.ReaderAt) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		group := make([]byte, s.Length)
		if _, err := in.ReadAt(group, s.Offset); err != nil {
			yield("", err)
			return
		}
		for _, b := range group[1:] {
			if !yield(string(b^group[0]), nil) {
				return
			}
		}
	}
}

func mask(size int, groups ...string) string {
	var file []byte
	for i, letters := range groups {
		file = append(file, byte(i+1))
		for _, b := range []byte(letters) {
			file = append(file, b^byte(i+1))
		}
	}
	return string(append(file, byte(size)))
}

// TestInputOf: a format of another package splits files by their content. A total order
// samples whole pieces.
func TestInputOf(t *testing.T) {
	files := map[string]string{"1": mask(4, "abc", "bca", "aaa"), "2": mask(3, "zz", "ab")}
	for _, total := range []bool{false, true} {
		out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) {
			letters := mapreduce.Map(mapreduce.InputOf(masked{}), func(_ *mapreduce.Task, letter string, emit func(string, int64)) error {
				emit(letter, 1)
				return nil
			})
			if total {
				letters.TotalOrder()
			}
			job := mapreduce.Fold(letters, mapreduce.Sum).Job("letters")
			job.Reduces = 2
			return job, nil
		}), files)
		counters := wire.Counters(out.Counters)
		maps, records := counters.Get(wire.JobCounters, wire.LaunchedMaps), counters.Get(wire.TaskCounters, wire.MapInputRecords)
		if maps != 3 || records != 13 {
			t.Errorf("%d maps read %d records", maps, records)
		}
		want := map[string]string{"part-r-00000": "a\t6\nc\t2\n", "part-r-00001": "b\t3\nz\t2\n"} // by hash
		if total {
			want = map[string]string{"part-r-00000": "a\t6\n", "part-r-00001": "b\t3\nc\t2\nz\t2\n"}
		}
		for name, text := range want {
			if out.Files[name] != text {
				t.Errorf("total order %v: %s has %q, want %q", total, name, out.Files[name], text)
			}
		}
	}
}
