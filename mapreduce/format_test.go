package mapreduce

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"testing"
	"time"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

func TestOwnInputFormatAndCodec(t *testing.T) {
	day := &Codec[time.Time]{
		Name: "day",
		Append: func(dst []byte, v time.Time) []byte {
			return binary.BigEndian.AppendUint32(dst, uint32(v.Unix()/86400))
		},
		Decode: func(src []byte) (time.Time, error) {
			if len(src) != 4 {
				return time.Time{}, errors.New("no day")
			}
			return time.Unix(int64(binary.BigEndian.Uint32(src))*86400, 0).UTC(), nil
		},
		Text: func(dst []byte, v time.Time) []byte { return v.AppendFormat(dst, time.DateOnly) },
	}
	numbers := NewInput("numbers", func(s Split, r io.ReaderAt) iter.Seq2[int64, error] {
		return func(yield func(int64, error) bool) {
			for at := s.Offset; at < s.Offset+s.Length; at++ {
				var b [1]byte
				if _, err := r.ReadAt(b[:], at); err != nil {
					yield(0, err)
					return
				}
				if b[0] == '!' {
					yield(0, errors.New("bad number"))
					return
				}
				if !yield(int64(b[0]), nil) {
					return
				}
			}
		}
	})
	make := func() bridge.Compiler {
		days := Map(numbers, func(_ *Task, n int64, emit func(time.Time, int64)) error {
			emit(time.Unix(n*86400+5, 0), 1)
			return nil
		}).Codecs(day, nil)
		job := Fold(days, Sum).Job("days")
		job.Format = csv{}
		return job
	}
	b := &jobRunner{files: map[string]string{"in": "aba"}}
	out, err := b.run(make())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mainText(out, "days"), "1970-04-08;2\n1970-04-09;1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	checkError(t, make(), &jobRunner{files: map[string]string{"in": "a!"}}, "file:///w/in", "bad number")
}

type csv struct{}

func (csv) Name() string { return "csv" }
func (csv) AppendRecord(dst, key, value []byte) []byte {
	return fmt.Appendf(dst, "%s;%s\n", key, value)
}
