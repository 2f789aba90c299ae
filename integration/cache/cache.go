// Package cache stores downloads for tests and benchmarks outside the repository: in
// $QUERN_CACHE, or in quern below the user's cache directory.
package cache

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns the directory for a name and a key; another key has another directory. If it does
// not exist, fill writes it under a temporary name. If several processes fill it at the same
// time, all use the first complete one.
func Dir(name, key string, fill func(dir string) error) (string, error) {
	root := os.Getenv("QUERN_CACHE")
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		root = filepath.Join(user, "quern")
	}
	sum := sha256.Sum256([]byte(key))
	dir := filepath.Join(root, fmt.Sprintf("%s-%x", name, sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(root, 0o777); err != nil {
		return "", err
	}
	temporary, err := os.MkdirTemp(root, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	if err := fill(temporary); err != nil {
		return "", err
	}
	if err := os.Rename(temporary, dir); err != nil {
		if _, missing := os.Stat(dir); missing != nil {
			return "", err
		}
	}
	return dir, nil
}
