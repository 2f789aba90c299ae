package dfs

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// CleanDefault returns the common form of a default file system, Hadoop's fs.defaultFS: a URL without a path,
// as hdfs://nn:8020/. It returns "" for the local file system, and for an empty URL.
func CleanDefault(url string) (string, error) {
	if url == "" {
		return "", nil
	}
	clean, err := Clean(url)
	scheme, _, _ := Scheme(url)
	switch {
	case err != nil || scheme == "" || Dir(clean) != clean:
		return "", fmt.Errorf("file system %q: %w: want a URL without a path, as hdfs://nn:8020", url, fs.ErrInvalid)
	case clean == "file:///":
		return "", nil
	}
	return clean, nil
}

// CleanOn is [Clean] for names that lack a scheme because they are paths on a default file system, which has the
// form of [CleanDefault]. Such a path must be absolute.
func CleanOn(defaultFS, name string) (string, error) {
	scheme, _, err := Scheme(name)
	switch {
	case err != nil:
		return "", err
	case defaultFS == "" || scheme != "":
		return Clean(name)
	case !path.IsAbs(name):
		return "", fmt.Errorf("path %q: %w: with fs.defaultFS=%s a path must be absolute, as /user/NAME/%s; for a local file write a file:/// URL",
			name, fs.ErrInvalid, defaultFS, name)
	}
	return Clean(strings.TrimSuffix(defaultFS, "/") + name)
}
