package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/sequencefile"
)

// files compares compressed files and SequenceFiles. Hadoop's files are recorded. Hadoop reads Quern's files, and
// their hashes are recorded. The gate reads the recorded files and writes those of Quern again.
type files struct{ dir string }

// Testdata with recorded files.
const (
	codecDir    = "compression/testdata"
	sequenceDir = "sequencefile/testdata"
)

// splitSizes are compared with the splits of Hadoop's readers. Those of SequenceFiles are above their headers,
// within which Hadoop reads records twice.
var splitSizes = map[string][]int64{
	"text long.bz2":                     {100, 999, 3000, 4200, 6300, 20000},
	"sequence texts-none.seq":           {200, 500, 900, 1400, 3000},
	"sequence texts-record-lz4.seq":     {200, 500, 900, 3000},
	"sequence texts-block-deflate.seq":  {180, 250, 415, 3000},
	"sequence texts-record-deflate.seq": {200, 500, 900, 3000},
	"sequence texts-record-bz2.seq":     {200, 500, 900, 3000},
	"sequence texts-record-snappy.seq":  {200, 500, 900, 3000},
	"sequence texts-block-bz2.seq":      {180, 250, 415, 3000},
	"sequence texts-block-lz4.seq":      {180, 250, 415, 3000},
	"sequence texts-block-snappy.seq":   {180, 250, 415, 3000},
	"sequence nulls-block-deflate.seq":  {200, 250, 415},
}

func (f files) compared(ctx context.Context) (a answers, err error) {
	java, err := compiled(ctx, f.dir, "HadoopFiles", "org.apache.hadoop:hadoop-mapreduce-client-core:", "org.lz4:lz4-java:1.8.0")
	if err != nil {
		return a, err
	}
	a = answers{version: hadoopVersion, records: make(map[string]string)}
	dirs := map[string]string{"codecs": codecDir, "sequences": sequenceDir}
	for what, testdata := range dirs {
		dir := filepath.Join(f.dir, what)
		if err := os.Mkdir(dir, 0o777); err != nil {
			return a, err
		}
		printed, err := java("", what, dir)
		if err != nil {
			return a, err
		}
		if err := f.record(dir, testdata, &a); err != nil {
			return a, err
		}
		if what == "sequences" {
			a.records[sequenceDir+"/records.txt"] = printed
			if err := f.gzipped(dir); err != nil {
				return a, err
			}
		}
	}
	if a.records["sequencefile/writable/testdata/values.txt"], err = java("", "values"); err != nil {
		return a, err
	}
	if err := f.recordSplits(java, &a); err != nil {
		return a, err
	}
	return a, f.readByHadoop(ctx, java, &a)
}

// record records Hadoop's files in a directory. It writes each again with Quern, below quern, and records the hashes.
func (f files) record(dir, testdata string, a *answers) error {
	names, err := filepath.Glob(dir + "/*")
	if err != nil {
		return err
	}
	own := dir + "/quern"
	if err := os.Mkdir(own, 0o777); err != nil {
		return err
	}
	var written strings.Builder
	written.WriteString("# SHA-256 of the files that Quern writes with the content of Hadoop's. Hadoop has read the same content in them.\n\n")
	for _, name := range names {
		theirs, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		base := filepath.Base(name)
		a.records[testdata+"/hadoop/"+base] = string(theirs)
		ours, err := rewritten(base, theirs)
		if err != nil {
			return fmt.Errorf("read Hadoop's %s: %w", base, err)
		}
		if err := os.WriteFile(filepath.Join(own, base), ours, 0o666); err != nil {
			return err
		}
		fmt.Fprintf(&written, "%s %x\n", base, sha256.Sum256(ours))
	}
	a.records[testdata+"/written.txt"] = written.String()
	return nil
}

// gzipped writes SequenceFiles with gzip, below quern, which Hadoop reads but writes only with native code.
func (f files) gzipped(dir string) error {
	gzip, err := compression.Named("gzip")
	if err != nil {
		return err
	}
	for _, set := range []string{"texts", "nulls", "empty"} {
		theirs, err := os.ReadFile(filepath.Join(dir, set+"-none.seq"))
		if err != nil {
			return err
		}
		for name, how := range map[string]sequencefile.Compression{"record": sequencefile.PerRecord, "block": sequencefile.Block} {
			ours, err := copied(theirs, func(h *sequencefile.Header) { h.Compression, h.Codec = how, gzip })
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, "quern", set+"-"+name+"-gz.seq"), ours, 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewritten reads a file of Hadoop and writes its content again.
func rewritten(name string, file []byte) ([]byte, error) {
	if codec := compression.OfFile(name); codec != nil {
		var out bytes.Buffer
		content, err := contentOf(codec, file)
		if err != nil {
			return nil, err
		}
		w, err := codec.NewWriter(&out)
		if err != nil {
			return nil, err
		}
		_, err = w.Write(content)
		err = errors.Join(err, w.Close())
		return out.Bytes(), err
	}
	return copied(file, func(*sequencefile.Header) {})
}

// copied copies the records of a SequenceFile into one with another header.
func copied(file []byte, change func(*sequencefile.Header)) ([]byte, error) {
	var out bytes.Buffer
	r, err := sequencefile.NewReader(bytes.NewReader(file), int64(len(file)), sequencefile.Limits{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	header := r.Header
	change(&header)
	w, err := sequencefile.NewWriter(&out, sequencefile.Options{Header: header, Sync: r.Sync, SyncInterval: 500, BlockSize: 800})
	if err != nil {
		return nil, err
	}
	for record, err := range r.Records(0, math.MaxInt64) {
		if err := errors.Join(err, w.Append(record.Key, record.Value)); err != nil {
			return nil, err
		}
	}
	err = w.Close()
	return out.Bytes(), err
}

func contentOf(codec *compression.Codec, file []byte) ([]byte, error) {
	r := codec.NewReader()
	defer r.Close()
	r.Reset(bytes.NewReader(file), compression.Whole)
	return io.ReadAll(r)
}

// digest returns the digest of a file's content, as HadoopFiles prints it.
func digest(name string, file []byte) (string, error) {
	if codec := compression.OfFile(name); codec != nil {
		content, err := contentOf(codec, file)
		return fmt.Sprintf("%x", sha256.Sum256(content)), err
	}
	r, err := sequencefile.NewReader(bytes.NewReader(file), int64(len(file)), sequencefile.Limits{})
	if err != nil {
		return "", err
	}
	defer r.Close()
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %s\n", r.Header.KeyClass, r.Header.ValueClass)
	for _, k := range slices.Sorted(maps.Keys(r.Header.Metadata)) {
		fmt.Fprintf(sum, "%s=%s\n", k, r.Header.Metadata[k])
	}
	for record, err := range r.Records(0, math.MaxInt64) {
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "x%x x%x\n", record.Key, record.Value)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

func (f files) recordSplits(java func(string, ...string) (string, error), a *answers) error {
	for kind, file := range map[string]string{"text": "runtime/testdata/bzip2splits.txt", "sequence": sequenceDir + "/splits.txt"} {
		var in strings.Builder
		for _, of := range slices.Sorted(maps.Keys(splitSizes)) {
			dir := map[string]string{"text": "codecs", "sequence": "sequences"}[kind]
			if k, name, _ := strings.Cut(of, " "); k == kind {
				for _, size := range splitSizes[of] {
					fmt.Fprintf(&in, "%s %s %d\n", kind, filepath.Join(f.dir, dir, name), size)
				}
			}
		}
		printed, err := java(in.String(), "splits")
		if err != nil {
			return err
		}
		a.records[file] = "# Splits of Hadoop's readers: kind, file, size, and for each split the number of its records and a digest of them.\n\n" + printed
	}
	return nil
}

// readByHadoop lets Hadoop read both its own files and Quern's, and compares the contents with those that Quern reads.
func (f files) readByHadoop(ctx context.Context, java func(string, ...string) (string, error), a *answers) error {
	var in strings.Builder
	want := make(map[string]string)
	for _, kind := range []string{"codec", "sequence"} {
		names, err := filepath.Glob(filepath.Join(f.dir, kind+"s", "*"))
		if err != nil {
			return err
		}
		own, err := filepath.Glob(filepath.Join(f.dir, kind+"s", "quern", "*"))
		if err != nil {
			return err
		}
		for _, name := range append(names, own...) {
			data, err := os.ReadFile(name)
			if err != nil {
				continue // the directory quern
			}
			fmt.Fprintf(&in, "%s %s\n", kind, name)
			if want[name], err = digest(filepath.Base(name), data); err != nil {
				a.differences = append(a.differences, fmt.Sprintf("%s: %v", name, err))
			}
		}
	}
	printed, err := java(in.String(), "read")
	if err != nil {
		return err
	}
	for line := range strings.Lines(printed) {
		name, got, _ := strings.Cut(strings.TrimSpace(line), " ")
		a.lines++
		if got != want[name] {
			a.differences = append(a.differences, fmt.Sprintf("%s: Hadoop reads %s, Quern %s", strings.TrimPrefix(name, f.dir), got, want[name]))
		}
	}
	return f.zstd(ctx, a)
}

// zstd compares with the zstd tool, because Hadoop's zstd needs native code.
func (f files) zstd(ctx context.Context, a *answers) error {
	if _, err := exec.LookPath("zstd"); err != nil {
		return fmt.Errorf("%w: not installed: zstd", minicluster.ErrUnavailable)
	}
	codec, err := compression.Named("zstd")
	if err != nil {
		return err
	}
	for _, name := range []string{"empty", "lines", "long"} {
		theirs, err := os.ReadFile(filepath.Join(f.dir, "codecs", name+".gz"))
		if err != nil {
			return err
		}
		gzip, err := compression.Named("gzip")
		if err != nil {
			return err
		}
		content, err := contentOf(gzip, theirs)
		if err != nil {
			return err
		}
		run := func(in []byte, args ...string) ([]byte, error) {
			cmd := exec.CommandContext(ctx, "zstd", args...)
			cmd.Stdin = bytes.NewReader(in)
			return cmd.Output()
		}
		for _, level := range []string{"-1", "-19", "--no-check"} {
			packed, err := run(content, "-c", level)
			if err != nil {
				return fmt.Errorf("zstd %s: %w", level, err)
			}
			skippable := append([]byte("\x52\x2a\x4d\x18\x03\x00\x00\x00abc"), packed...) // a skippable frame, then two others
			got, err := contentOf(codec, append(skippable, packed...))
			if err != nil || !bytes.Equal(got, append(content[:len(content):len(content)], content...)) {
				a.differences = append(a.differences, fmt.Sprintf("%s by zstd %s: Quern reads %d bytes, %v", name, level, len(got), err))
			}
			a.lines++
		}
		var ours bytes.Buffer
		w, err := codec.NewWriter(&ours)
		if err != nil {
			return err
		}
		if _, err := w.Write(content); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if got, err := run(ours.Bytes(), "-dc"); err != nil || !bytes.Equal(got, content) {
			a.differences = append(a.differences, fmt.Sprintf("%s: the zstd tool reads %d bytes, %v", name, len(got), err))
		}
		a.lines++
	}
	return nil
}
