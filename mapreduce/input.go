package mapreduce

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
)

// Input is where a map's records come from. Several maps may read one input.
type Input[R any] struct {
	spec *inputSpec
	read func(t *Task, in splitReader) iter.Seq[R]
}

// inputSpec describes an input, whatever its records.
type inputSpec struct {
	format     string
	own        mrruntime.Format // nil: what the name says
	recordSize int
	paths      []string // none: -input
	from       stage    // the stage whose result is read
	err        error
}

// recordSource is the part of splitReader that inputs are made of.
type recordSource interface {
	Lines() iter.Seq[string]
	Records(size int) iter.Seq[[]byte]
	Files() iter.Seq2[string, []byte]
	Binary() iter.Seq2[[]byte, []byte]
}

// Lines reads text line by line, without the line ends, which are LF and CR LF; a
// CR elsewhere is data. Paths are files, directories (their files, but hidden
// ones) and globs, as local paths or URLs. Globs are Hadoop's: *, ?, [a-c], [!a], {a,b},
// and a backslash takes a special character's meaning away; hidden files do not match.
// {a|b} is the one that is there. (| is not Hadoop's, to which it is a character as
// others; braces with both , and | are refused.) Without any path, -input is read.
//
// Files ending in .gz and .zst are decompressed; those of other codecs and archives are
// refused by their suffixes. A byte order mark at a file's start belongs to no line.
// A line is a part of a block that never changes: it may be kept.
func Lines(paths ...string) Input[string] {
	return Input[string]{
		spec: &inputSpec{format: "lines", paths: paths},
		read: func(_ *Task, in splitReader) iter.Seq[string] { return in.Lines() },
	}
}

// KeyValues reads text line by line as key and value, divided at the first tab,
// or the first character of the property
// mapreduce.input.keyvaluelinerecordreader.key.value.separator. A line without
// one is all key. Paths are as for [Lines].
func KeyValues(paths ...string) Input[Pair[string, string]] {
	return Input[Pair[string, string]]{
		spec: &inputSpec{format: "keyvalues", paths: paths},
		read: func(t *Task, in splitReader) iter.Seq[Pair[string, string]] {
			separator := t.Property(property.KeyValueSeparator)
			_, size := utf8.DecodeRuneInString(separator)
			separator = separator[:size]
			return func(yield func(Pair[string, string]) bool) {
				for line := range in.Lines() {
					k, v, _ := strings.Cut(line, separator)
					if !yield(PairOf(k, v)) {
						return
					}
				}
			}
		},
	}
}

// Records reads records of size bytes each. A record is valid until the next one.
// Paths are as for [Lines].
func Records(size int, paths ...string) Input[[]byte] {
	spec := &inputSpec{format: "records", recordSize: size, paths: paths}
	if size < 1 {
		spec.err = fmt.Errorf("input of records of %d bytes: want 1 or more", size)
	}
	return Input[[]byte]{
		spec: spec,
		read: func(_ *Task, in splitReader) iter.Seq[[]byte] { return in.Records(size) },
	}
}

// Files reads whole files: A is the file's URL, B its content, valid until the
// next one. Paths are as for [Lines]; archives are read as they are.
func Files(paths ...string) Input[Pair[string, []byte]] {
	return Input[Pair[string, []byte]]{
		spec: &inputSpec{format: "files", paths: paths},
		read: func(_ *Task, in splitReader) iter.Seq[Pair[string, []byte]] {
			return func(yield func(Pair[string, []byte]) bool) {
				for name, content := range in.Files() {
					if !yield(PairOf(name, content)) {
						return
					}
				}
			}
		},
	}
}

// From reads what another job of the same [Flow] wrote, as it emitted it. That
// job's records are kept in a temporary place unless it has an Output.
func From[K, V any](r *Result[K, V]) Input[Pair[K, V]] {
	spec := &inputSpec{format: Binary{}.Name()}
	if r == nil || r.stage == nil {
		spec.err = fmt.Errorf("From was given a result that no job makes")
		return Input[Pair[K, V]]{spec: spec}
	}
	spec.from = r.stage
	return Input[Pair[K, V]]{
		spec: spec,
		read: func(t *Task, in splitReader) iter.Seq[Pair[K, V]] {
			key, value := must(r.key), must(r.value)
			kd, vd := &decoder{keep: true}, &decoder{keep: true}
			return func(yield func(Pair[K, V]) bool) {
				for kb, vb := range in.Binary() {
					k, err := read(key, kd, kb)
					if err != nil {
						t.fail(err)
						return
					}
					v, err := read(value, vd, vb)
					if err != nil {
						t.fail(err)
						return
					}
					if !yield(PairOf(k, v)) {
						return
					}
				}
			}
		},
	}
}

// NewInput reads a format of one's own, known by its name. Read is called for
// each piece of a file that a map is to read, and gives the records that begin in
// the piece, which may end beyond it; the file is read through the io.ReaderAt,
// which is not decompressed. A record may be valid until the next one only. An
// error fails the attempt. Paths are as for [Lines]. See [InputOf] for a format that
// cuts files itself.
func NewInput[R any](name string, read func(Split, io.ReaderAt) iter.Seq2[R, error], paths ...string) Input[R] {
	spec := &inputSpec{format: name, paths: paths}
	if name == "" || mrruntime.BuiltIn(name) {
		spec.err = fmt.Errorf("input format %q: the name is empty or taken", name)
	}
	if read == nil {
		spec.err = fmt.Errorf("input format %q: no function to read it", name)
	}
	return Input[R]{
		spec: spec,
		read: func(t *Task, in splitReader) iter.Seq[R] {
			return func(yield func(R) bool) {
				for _, c := range in.Chunks() {
					f, err := in.Open(c)
					if err != nil {
						t.fail(err)
						return
					}
					more := ownRecords(t, in, read(splitOf(c), f), c.Path, yield)
					if err := f.Close(); err != nil {
						t.fail(fmt.Errorf("close %s: %w", c.Path, err))
					}
					if !more || t.err != nil {
						return
					}
				}
			}
		},
	}
}

// InputFormat is a format of one's own that cuts files itself: at the blocks of a
// container, say, or a number of records.
type InputFormat[R any] interface {
	// Name stands in the job's description: lower case, no blanks.
	Name() string
	// Splits gives the pieces of files that each map reads, one after the other: of each
	// its Path, Offset and Length. What no piece has is not read. It is called once, before
	// the maps, with all files that the paths stand for.
	Splits(files []File) ([][]Split, error)
	// Read gives the records of a piece, as the function of [NewInput] does.
	Read(Split, io.ReaderAt) iter.Seq2[R, error]
}

// File is one of the files that the paths of an input stand for.
type File = mrruntime.File

// InputOf reads a format of one's own. Paths are as for [Lines].
func InputOf[R any](f InputFormat[R], paths ...string) Input[R] {
	in := NewInput(f.Name(), f.Read, paths...)
	in.spec.own = mrruntime.Cut(func(files []File) ([][]mrruntime.Chunk, error) {
		splits, err := f.Splits(files)
		cut := make([][]mrruntime.Chunk, len(splits))
		for i, split := range splits {
			for _, s := range split {
				cut[i] = append(cut[i], mrruntime.Chunk{Path: s.Path, Offset: s.Offset, Length: s.Length})
			}
		}
		return cut, err
	})
	return in
}

func ownRecords[R any](t *Task, in splitReader, records iter.Seq2[R, error], path string, yield func(R) bool) (more bool) {
	for rec, err := range records {
		if err != nil {
			t.fail(fmt.Errorf("read %s: %w", path, err))
			return false
		}
		if !in.CountRecord() || !yield(rec) {
			return false
		}
	}
	return true
}
