package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/avro"

	"github.com/quernmr/quern/avrofile"
)

// avroFiles compares Avro's object container files as files does with SequenceFiles; dir is for its files.
type avroFiles struct{ dir string }

const avroDir = "avrofile/testdata"

// avroSplits are compared with the splits of Avro's DataFileReader.
var avroSplits = map[string][]int64{
	"all-null.avro":        {60, 100, 500, 1300, 1400, 4000, 10_000},
	"all-deflate.avro":     {100, 400, 1500, 3000},
	"pairs-snappy.avro":    {50, 250, 400, 700},
	"texts-zstandard.avro": {30, 200},
	"texts-bzip2.avro":     {200},
	"empty-null.avro":      {100, 1000},
}

func (f avroFiles) compared(ctx context.Context) (a answers, err error) {
	java, err := compiled(ctx, f.dir, "AvroFiles", "com.github.luben:zstd-jni:1.5.5-5")
	if err != nil {
		return a, err
	}
	version, err := java("", "version")
	if err != nil {
		return a, err
	}
	a = answers{version: strings.TrimSpace(version), records: make(map[string]string)}
	dir := filepath.Join(f.dir, "avro")
	if err := os.MkdirAll(dir+"/quern", 0o777); err != nil {
		return a, err
	}
	if a.records[avroDir+"/records.txt"], err = java("", "write", dir); err != nil {
		return a, err
	}
	paths, err := f.record(dir, &a)
	if err != nil {
		return a, err
	}
	var in strings.Builder
	for _, name := range slices.Sorted(maps.Keys(avroSplits)) {
		for _, size := range avroSplits[name] {
			fmt.Fprintf(&in, "%s %d\n", filepath.Join(dir, name), size)
		}
	}
	splits, err := java(in.String(), "splits")
	if err != nil {
		return a, err
	}
	a.records[avroDir+"/splits.txt"] = "# Splits of Avro's DataFileReader: file, size, and for each split the number of its records and a digest of them.\n\n" + splits
	return a, f.readByJava(java, paths, &a)
}

// record records Java's files. It writes each again with Quern, below quern, and records the hashes. It returns the
// paths of all.
func (f avroFiles) record(dir string, a *answers) (paths []string, err error) {
	names, err := filepath.Glob(dir + "/*.avro")
	if err != nil {
		return nil, err
	}
	written := "# SHA-256 of the files that Quern writes with the records of Java's. Java's Avro has read the same records in them.\n\n"
	for _, name := range names {
		theirs, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		a.records[avroDir+"/java/"+base] = string(theirs)
		ours, _, err := avroRewritten(theirs)
		if err != nil {
			return nil, fmt.Errorf("read Java's %s: %w", base, err)
		}
		own := filepath.Join(dir, "quern", base)
		if err := os.WriteFile(own, ours, 0o666); err != nil {
			return nil, err
		}
		written += fmt.Sprintf("%s %x\n", base, sha256.Sum256(ours))
		paths = append(paths, name, own)
	}
	a.records[avroDir+"/written.txt"] = written
	return paths, nil
}

// readByJava lets Java's Avro read its own files and Quern's, and compares the contents with those that Quern reads.
func (f avroFiles) readByJava(java func(string, ...string) (string, error), paths []string, a *answers) error {
	printed, err := java(strings.Join(paths, "\n")+"\n", "read")
	if err != nil {
		return err
	}
	for line := range strings.Lines(printed) {
		path, theirs, _ := strings.Cut(strings.TrimSpace(line), " ")
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		a.lines++
		if _, ours, err := avroRewritten(file); ours != theirs {
			a.differences = append(a.differences, fmt.Sprintf("%s: Java reads %s, Quern %s, %v", strings.TrimPrefix(path, f.dir), theirs, ours, err))
		}
	}
	return nil
}

// avroRewritten reads a file and writes its records again. It returns the digest of the content, as AvroFiles prints it.
func avroRewritten(file []byte) (again []byte, digest string, err error) {
	r, err := avrofile.NewReader(bytes.NewReader(file), int64(len(file)), avrofile.Limits{})
	if err != nil {
		return nil, "", err
	}
	defer r.Close()
	sum, metadata := sha256.New(), make(map[string]string)
	fmt.Fprintln(sum, fullName(r.Schema.Root()))
	for _, name := range slices.Sorted(maps.Keys(r.Metadata)) {
		if value := string(r.Metadata[name]); !strings.HasPrefix(name, "avro.") {
			metadata[name] = value
			fmt.Fprintf(sum, "%s=%s\n", name, value)
		}
	}
	var out bytes.Buffer
	w, err := avrofile.NewWriter(&out, r.Schema, avrofile.Options{Codec: r.Codec, Level: avrofile.DefaultLevel, BlockSize: 500, Metadata: metadata, Sync: r.Sync})
	if err != nil {
		return nil, "", err
	}
	for record, err := range avrofile.Records[any](r, nil, 0, math.MaxInt64) {
		if err != nil {
			return nil, "", err
		}
		encoded, err := r.Schema.Encode(record)
		if err != nil {
			return nil, "", err
		}
		fmt.Fprintf(sum, "x%x\n", encoded)
		if err := w.Encode(record); err != nil {
			return nil, "", err
		}
	}
	err = w.Close()
	return out.Bytes(), fmt.Sprintf("%x", sum.Sum(nil)), err
}

func fullName(s *avro.SchemaNode) string {
	switch {
	case s.Name == "":
		return s.Type
	case s.Namespace == "":
		return s.Name
	}
	return s.Namespace + "." + s.Name
}
