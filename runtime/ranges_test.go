package runtime

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// lineRanges is a format of files of ranges: a line for each.
var lineRanges = &Ranges{
	Read: func(file io.ReaderAt, size int64) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			lines := bufio.NewScanner(io.NewSectionReader(file, 0, size))
			for lines.Scan() && yield(bytes.Clone(lines.Bytes()), nil) {
			}
			if lines.Err() != nil {
				yield(nil, lines.Err())
			}
		}
	},
	Write: func(w io.Writer, cuts [][]byte) error {
		_, err := w.Write(append(bytes.Join(cuts, []byte("\n")), '\n'))
		return err
	},
}

// rangesAttempt returns a setup attempt of a job with properties.
func rangesAttempt(t *testing.T, reduces int, properties map[string]string) *attempt {
	f := mem.New(1)
	for name, text := range map[string]string{"good": "b\nd\n", "equal": "b\nb\n", "falling": "d\nb\n", "short": "b\n", "more": "b\nc\nd\n"} {
		putFile(f, "mem://t/"+name, []byte(text))
	}
	return &attempt{fs: f, tree: newTree(f), job: &Job{Ranges: lineRanges}, cmd: &wire.Run{Attempt: testAttempt(wire.Setup, 0, 0)},
		sub: &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{{Reduces: reduces, Properties: properties}}}}}
}

// TestReadRanges: a file must have an ascending key for each reduce but the first.
func TestReadRanges(t *testing.T) {
	for name, want := range map[string]string{
		"good": "", "equal": "key 2 is not greater than key 1", "falling": "key 2 is not greater than key 1",
		"short": "ranges of 2 reduces, and the job 3", "missing": "mem://t/missing",
		"more": "ranges of more than 3 reduces",
	} {
		cuts, err := rangesAttempt(t, 3, map[string]string{RangesPath: "mem://t/" + name}).cuts()
		if want == "" {
			if err != nil || string(bytes.Join(cuts.Cuts, []byte(" "))) != "b d" {
				t.Errorf("%s: %q, %v", name, cuts.Cuts, err)
			}
			continue
		}
		if err == nil || !isFatal(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), RangesPath) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	a := rangesAttempt(t, 3, map[string]string{RangesPath: "mem://t/good"})
	a.job.Ranges = nil
	if _, err := a.cuts(); !isFatal(err) {
		t.Errorf("a job without a format of files: %v", err)
	}
}

// TestReadRangesStops: an error of reading may pass, and a file with too many keys is not read to its end.
func TestReadRangesStops(t *testing.T) {
	a, reads := rangesAttempt(t, 3, map[string]string{RangesPath: "mem://t/good"}), 0
	reset := errors.New("connection reset")
	for _, failure := range []error{reset, nil} {
		a.job.Ranges = &Ranges{Read: func(io.ReaderAt, int64) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				for reads = 1; yield([]byte{byte(reads)}, failure) && reads < 1000; reads++ {
				}
			}
		}}
		if _, err := a.cuts(); err == nil || errors.Is(err, reset) != (failure != nil) || isFatal(err) != (failure == nil) || reads > 3 {
			t.Errorf("failure %v: %v after %d keys", failure, err, reads)
		}
	}
}

// TestWriteRanges: the ranges of a sample make a new file, which a second attempt finds. Another file stays.
func TestWriteRanges(t *testing.T) {
	a := rangesAttempt(t, 3, nil)
	cuts := [][]byte{[]byte("b"), []byte("d")}
	for _, name := range []string{"mem://t/new", "mem://t/new", "mem://t/good"} {
		if err := a.writeRanges(name, cuts); err != nil || string(must(readAll(a.fs, name, 100))) != "b\nd\n" {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := bytes.Repeat([]byte("x"), sampledKey)
	for name, c := range map[string]struct {
		cuts [][]byte
		want string
	}{
		"mem://t/short": {cuts, "it exists, with other content"},
		"mem://t/other": {[][]byte{[]byte("b"), []byte("b")}, "too few different keys for 3 reduces"},
		"mem://t/long":  {[][]byte{[]byte("b"), long}, "more than 1023 bytes"},
	} {
		if err := a.writeRanges(name, c.cuts); !isFatal(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if got := string(must(readAll(a.fs, "mem://t/short", 100))); got != "b\n" {
		t.Errorf("the other file is now %q", got)
	}
	if err := a.writeRanges("mem://t/none/x", cuts); err == nil || errors.Is(err, ErrInput) {
		t.Errorf("a directory that is missing: %v", err)
	}
}
