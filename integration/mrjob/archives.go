package mrjob

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing/fstest"

	"github.com/quernmr/quern/archive"
)

// Pack returns an archive of files by their paths: a zip, or a tar with gzip, as the name says.
func Pack(name string, files map[string]string) ([]byte, error) {
	tree := make(fstest.MapFS)
	for path, text := range files {
		tree[path] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	var packed bytes.Buffer
	if archive.Suffix(name) == ".zip" {
		w := zip.NewWriter(&packed)
		err := errors.Join(w.AddFS(tree), w.Close())
		return packed.Bytes(), err
	}
	zipped := gzip.NewWriter(&packed)
	w := tar.NewWriter(zipped)
	err := errors.Join(w.AddFS(tree), w.Close(), zipped.Close())
	return packed.Bytes(), err
}

// Unpack returns the files of an archive by their paths.
func Unpack(name, packed string) (map[string]string, error) {
	dir, err := os.MkdirTemp("", "quern-mrjob-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	dir += "/files"
	if err := archive.Unpack(context.Background(), name, strings.NewReader(packed), int64(len(packed)), dir, archive.DefaultLimits); err != nil {
		return nil, err
	}
	files, tree := make(map[string]string), os.DirFS(dir)
	return files, fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		files[path] = string(text)
		return err
	})
}
