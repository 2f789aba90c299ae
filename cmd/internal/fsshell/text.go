package fsshell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/quernmr/quern/avrofile/container"
	"github.com/quernmr/quern/cmd/internal/interrupt"
	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/parquetfile"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/sequencefile"
	"github.com/quernmr/quern/sequencefile/writable"
)

// decode prints a file decoded. The content tells SequenceFiles, Avro files and gzip, as in
// Hadoop, and Parquet files. Else the name's suffix tells the codec.
func (r *call) decode(p place, f dfs.File) error {
	begin := make([]byte, 4)
	n, err := f.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	begin = begin[:n]
	codec := compression.OfFile(p.Name)
	foreign, isForeign := compression.ForeignFile(p.Name)
	switch {
	case bytes.HasPrefix(begin, []byte("SEQ")):
		return r.sequence(f)
	case bytes.HasPrefix(begin, []byte("Obj\x01")):
		return r.avro(f)
	case bytes.HasPrefix(begin, []byte("PAR1")):
		return r.parquet(f)
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")):
		if codec, err = compression.Named("gzip"); err != nil {
			return err
		}
	case isForeign:
		return fmt.Errorf("this is %s, which -text does not decode", foreign.Content)
	}
	if _, err := p.files.Stat(dfs.Join(dfs.Dir(p.url), runtime.TypesName)); err == nil {
		return errors.New("it has binary records of a job, which -text does not decode: read them with mapreduce.Stored")
	}
	if codec == nil {
		return r.print(f)
	}
	unpacked := codec.NewReader()
	defer unpacked.Close()
	unpacked.Reset(f, compression.Whole)
	return r.print(unpacked)
}

// sequence prints the records of a SequenceFile: key, tab, value.
func (r *call) sequence(f dfs.File) error {
	in, err := sequencefile.NewReader(f, f.Info().Size, sequencefile.Limits{})
	if err != nil {
		return err
	}
	defer in.Close()
	var line []byte
	for record, err := range in.Records(0, math.MaxInt64) {
		if err != nil {
			return err
		}
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if line, err = appendWritable(line[:0], in.Header.KeyClass, record.Key); err != nil {
			return fmt.Errorf("the key at offset %d: %w", record.Offset, err)
		}
		line = append(line, '\t')
		if line, err = appendWritable(line, in.Header.ValueClass, record.Value); err != nil {
			return fmt.Errorf("the value at offset %d: %w", record.Offset, err)
		}
		if _, err := r.out.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// avro prints the records of an Avro file as JSON, a line each.
func (r *call) avro(f dfs.File) error {
	in, err := container.NewReader(f, f.Info().Size, container.Limits{})
	if err != nil {
		return err
	}
	defer in.Close()
	return in.WriteJSON(interrupt.Writer{Context: r.ctx, Writer: r.out})
}

// parquet prints the rows of a Parquet file as JSON, a line each.
func (r *call) parquet(f dfs.File) error {
	in, err := parquetfile.Open(f, f.Info().Size, parquetfile.Limits{})
	if err != nil {
		return err
	}
	out := interrupt.Writer{Context: r.ctx, Writer: r.out}
	for g := range in.Groups {
		if in.Groups[g].Rows == 0 {
			continue
		}
		rows, err := in.ReadRows(g, in.Root)
		if err != nil {
			return err
		}
		for range in.Groups[g].Rows {
			row, err := rows.Next()
			if err != nil {
				return err
			}
			if err := in.WriteJSON(out, in.Root, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendWritable appends an encoded value as its class's toString shows it.
func appendWritable(dst []byte, class string, data []byte) ([]byte, error) {
	v, ok, err := writable.Decode(class, data)
	switch {
	case err != nil:
		return dst, err
	case !ok:
		return dst, fmt.Errorf("-text does not know the class %s: it decodes the Writables of org.apache.hadoop.io", class)
	}
	return writable.AppendJava(dst, v), nil
}
