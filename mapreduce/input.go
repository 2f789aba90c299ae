package mapreduce

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/runtime/search"
)

// Input is a source of records for maps. Several maps may read one input.
type Input[R any] struct {
	spec *inputSpec
	read func(t *Task, in splitReader) iter.Seq[R]
}

// inputSpec describes an input without its record type.
type inputSpec struct {
	format     string
	custom     mrruntime.Format // nil: the built-in format of that name
	recordSize int
	paths      []string // empty: -input
	splits     int      // of an input without files
	types      string   // of the records of binary files, by formOf; empty: not checked
	from       stage    // reads the result of this stage
	err        error
}

// recordSource is the part of splitReader that reads records.
type recordSource interface {
	Lines() iter.Seq[string]
	Records(size int) iter.Seq[[]byte]
	Files() iter.Seq2[string, []byte]
	Binary() iter.Seq2[[]byte, []byte]
}

// Lines reads text line by line. Lines end with LF or CR LF, which are cut off; a CR
// elsewhere is data. The property textinputformat.record.delimiter replaces both. You may keep a
// line: its memory never changes.
//
// Paths are local paths or URLs of files, directories and globs; without any path,
// Lines reads -input. Hidden files in directories are skipped, and globs do not match
// them. Globs are as in Hadoop: *, ?, [a-c], [!a], {a,b}, and a backslash before a
// special character. In addition, {a|b} matches a or b; it is an error if both exist.
// Braces with both , and | are refused. (In Hadoop, | is an ordinary character.)
//
// Files ending in .bz2, .deflate, .gz, .lz4, .snappy and .zst are decompressed. Several maps
// may read one .bz2 file. Suffixes of other codecs and of archives are refused. A byte order
// mark at the start of a file is skipped.
func Lines(paths ...string) Input[string] {
	return Input[string]{
		spec: &inputSpec{format: "lines", paths: paths},
		read: func(_ *Task, in splitReader) iter.Seq[string] { return in.Lines() },
	}
}

// Containing reads only lines that contain text, as strings.Contains tells. It is for [Lines], [NLines], [KeyValues] and
// [JSONLines]: it tests their lines as they are in the file, without the ends. Several predicates may follow each
// other: a line must pass all.
//
// Lines are searched in whole blocks of the file, and only those that pass are cut: much faster than a
// test in the map. All lines of a split count as input records, and their numbers ([Task.Line]) and offsets stay the same. But a
// job that skips bad records numbers those that pass.
func (in Input[R]) Containing(text string) Input[R] {
	return in.only("Containing", search.Text(text))
}

// Matching reads only lines that re matches, as its method MatchString tells; see [Input.Containing]. It is fastest if
// each match has a fixed text, or one of a few, such as "error" in `error [0-9]+`.
func (in Input[R]) Matching(re *regexp.Regexp) Input[R] {
	switch {
	case in.spec == nil:
		return in
	case re == nil:
		return in.withError(errors.New("Matching was called without an expression"))
	}
	return in.only("Matching", search.Expression(re))
}

// only returns an input of the lines that pass a predicate.
func (in Input[R]) only(method string, p search.Predicate) Input[R] {
	if in.spec == nil {
		return in
	}
	if !slices.Contains([]string{"lines", "nlines", "keyvalues", "jsonlines"}, in.spec.format) {
		return in.withError(fmt.Errorf("input format %s: %s is for Lines, NLines, KeyValues and JSONLines", in.spec.format, method))
	}
	read := in.read
	in.read = func(t *Task, s splitReader) iter.Seq[R] {
		s.Only(p)
		return read(t, s)
	}
	return in
}

// NLines reads text line by line, as [Lines] does, but each map reads a number of lines, which
// the property mapreduce.input.lineinputformat.linespermap sets; by default one. Use it for few
// lines that need much work each: the job reads all lines to find the splits. Compressed files
// are refused. Paths are as for [Lines].
func NLines(paths ...string) Input[string] {
	return Input[string]{
		spec: &inputSpec{format: "nlines", paths: paths},
		read: func(_ *Task, in splitReader) iter.Seq[string] { return in.Lines() },
	}
}

// KeyValues reads text line by line and splits each line at its first tab into key and
// value. A line without a tab is all key. The first character of the property
// mapreduce.input.keyvaluelinerecordreader.key.value.separator replaces the tab.
// Paths are as for [Lines].
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

// Files reads whole files: A is the file's URL, B its content, which is valid until the
// next file. Paths are as for [Lines], but archives are read as they are.
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

// Generate reads no files: the job has one map for each n from 0 to maps-1, and records(n) are the
// records of that map. Use it for jobs that make their data, such as TeraGen and Pi. For the same n,
// records must return the same records in every attempt.
//
// With [Pairs.TotalOrder], the job's setup reads the first records of up to ten maps.
func Generate[R any](maps int, records func(n int) iter.Seq[R]) Input[R] {
	spec := &inputSpec{format: "generated", splits: maps}
	switch {
	case maps < 1:
		spec.err = fmt.Errorf("Generate was called with %d maps: want 1 or more", maps)
	case records == nil:
		spec.err = errors.New("Generate was called without a function")
	}
	return Input[R]{
		spec: spec,
		read: func(_ *Task, in splitReader) iter.Seq[R] {
			return func(yield func(R) bool) {
				for _, c := range in.Chunks() {
					for rec := range records(int(c.Offset)) {
						more, skip := in.CountRecord()
						if !more || !skip && !yield(rec) {
							return
						}
					}
				}
				in.EndRecords()
			}
		},
	}
}

// From reads the result of another job of the same [Flow], typed as that job emitted
// it. The result is temporary unless that job has an Output.
func From[K, V any](r *Result[K, V]) Input[Pair[K, V]] {
	spec := &inputSpec{format: Binary{}.Name()}
	if r == nil || r.stage == nil {
		spec.err = fmt.Errorf("From was called with a result that no job writes")
		return Input[Pair[K, V]]{spec: spec}
	}
	spec.from = r.stage
	return binaryInput(spec, r.key, r.value)
}

// Stored reads what a job of another program has written in the format [Binary]: the main output, in
// directories or files named part-…. Paths are as for [Lines]. The encodings of the records must be those
// of K and V, or the job is refused; the names of types may differ. Named outputs cannot be read.
func Stored[K, V any](paths ...string) Input[Pair[K, V]] { return stored[K, V](nil, nil, paths) }

func stored[K, V any](key *Codec[K], value *Codec[V], paths []string) Input[Pair[K, V]] {
	spec := &inputSpec{format: Binary{}.Name(), paths: paths}
	if spec.types, spec.err = formOf(key, value); spec.err != nil {
		spec.err = fmt.Errorf("input of binary records: %w", spec.err)
	}
	return binaryInput(spec, key, value)
}

func binaryInput[K, V any](spec *inputSpec, keyCodec *Codec[K], valueCodec *Codec[V]) Input[Pair[K, V]] {
	return Input[Pair[K, V]]{
		spec: spec,
		read: func(t *Task, in splitReader) iter.Seq[Pair[K, V]] {
			key, value := must(keyCodec), must(valueCodec)
			kd, vd := &decoder{keep: true}, &decoder{keep: true}
			return func(yield func(Pair[K, V]) bool) {
				for kb, vb := range in.Binary() {
					rec, err := readPair(key, value, kd, vd, kb, vb)
					if err != nil {
						t.fail(err)
						return
					}
					if !yield(rec) {
						return
					}
				}
			}
		},
	}
}

func readPair[K, V any](key *codec[K], value *codec[V], kd, vd *decoder, kb, vb []byte) (Pair[K, V], error) {
	k, err := read(key, kd, kb)
	if err != nil {
		return Pair[K, V]{}, err
	}
	v, err := read(value, vd, vb)
	return PairOf(k, v), err
}

// NewInput reads your own format; name identifies it in the job's description. A map
// calls read for each of its pieces of files. It must return the records that begin in
// the piece, even if they end beyond it. A record is valid until the next one.
// [Split.At] says where a record begins.
//
// The io.ReaderAt reads the whole file and does not decompress it. An error fails the
// attempt. Paths are as for [Lines]. See [Input.Whole] for files that cannot be split,
// [NewFileInput] for files that are read from beginning to end, and [InputOf] for a format
// that splits files itself.
func NewInput[R any](name string, read func(Split, io.ReaderAt) iter.Seq2[R, error], paths ...string) Input[R] {
	return ownInput(name, read, func(in splitReader, c mrruntime.Chunk) (io.ReaderAt, io.Closer, error) {
		f, err := in.Open(c)
		return f, f, err
	}, paths)
}

// NewFileInput is [NewInput] for files that are read from beginning to end: files are not
// split, and those with the suffix of a codec are decompressed, as for [Lines]. Archives
// are not refused.
func NewFileInput[R any](name string, read func(Split, io.Reader) iter.Seq2[R, error], paths ...string) Input[R] {
	in := ownInput(name, read, func(in splitReader, c mrruntime.Chunk) (io.Reader, io.Closer, error) {
		f, err := in.Stream(c)
		return f, f, err
	}, paths)
	in.spec.custom = mrruntime.Whole(true)
	return in
}

// Whole says that files of an input of [NewInput] cannot be split: one map reads each file. Empty files are read too.
func (in Input[R]) Whole() Input[R] {
	spec := &inputSpec{err: errors.New("Whole was called on the zero Input")}
	if in.spec != nil {
		copied := *in.spec
		spec = &copied
		switch {
		case mrruntime.BuiltIn(spec.format) || spec.from != nil || spec.custom != nil:
			spec.err = cmp.Or(spec.err, fmt.Errorf("input format %s: Whole is for inputs of NewInput; to read whole files, use Files or NewFileInput", spec.format))
		default:
			spec.custom = mrruntime.Whole(false)
		}
	}
	in.spec = spec
	return in
}

// ownInput is an input of an author's own format, which reads each piece of a file that open opens.
func ownInput[F, R any](name string, read func(Split, F) iter.Seq2[R, error], open func(splitReader, mrruntime.Chunk) (F, io.Closer, error), paths []string) Input[R] {
	spec := &inputSpec{format: name, paths: paths}
	if name == "" || mrruntime.BuiltIn(name) {
		spec.err = fmt.Errorf("input format %q: the name is empty or taken", name)
	}
	if read == nil {
		spec.err = fmt.Errorf("input format %q: the read function is nil", name)
	}
	return Input[R]{
		spec: spec,
		read: func(t *Task, in splitReader) iter.Seq[R] { return readPieces(t, in, read, open) },
	}
}

// readPieces yields the records of a map's pieces of files.
func readPieces[F, R any](t *Task, in splitReader, read func(Split, F) iter.Seq2[R, error], open func(splitReader, mrruntime.Chunk) (F, io.Closer, error)) iter.Seq[R] {
	return func(yield func(R) bool) {
		for _, c := range in.Chunks() {
			f, closer, err := open(in, c)
			if err != nil {
				t.fail(err)
				return
			}
			split := splitOf(c)
			split.task = t
			more := customRecords(t, in, read(split, f), c.Path, yield)
			if err := closer.Close(); err != nil {
				t.fail(fmt.Errorf("close %s: %w", c.Path, err))
			}
			if !more || t.err != nil {
				return
			}
		}
		in.EndRecords()
	}
}

// InputFormat is your own format that splits files itself, for instance at the blocks
// of a container, or after a number of records.
type InputFormat[R any] interface {
	// Name identifies the format in the job's description: lower case, no blanks.
	Name() string
	// Splits returns, for each map, the pieces of files that the map reads, in reading
	// order. Set Path, Offset and Length. Bytes outside all pieces are not read. Splits
	// runs once, before the maps, with all files that the paths match.
	Splits(files []File) ([][]Split, error)
	// Read returns the records of a piece, as the function of [NewInput] does.
	Read(Split, io.ReaderAt) iter.Seq2[R, error]
}

// File is one of the files that the paths of an input match.
type File = mrruntime.File

// InputOf reads your own format. Paths are as for [Lines].
func InputOf[R any](f InputFormat[R], paths ...string) Input[R] {
	in := NewInput(f.Name(), f.Read, paths...)
	in.spec.custom = mrruntime.Cut(func(files []File) ([][]mrruntime.Chunk, error) {
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

func customRecords[R any](t *Task, in splitReader, records iter.Seq2[R, error], path string, yield func(R) bool) (more bool) {
	for rec, err := range records {
		if err != nil {
			t.fail(fmt.Errorf("read %s: %w", path, err))
			return false
		}
		more, skip := in.CountRecord()
		if !more || !skip && !yield(rec) {
			return false
		}
	}
	return true
}
