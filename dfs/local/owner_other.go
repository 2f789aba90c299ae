//go:build !unix

package local

import (
	"errors"
	"io/fs"

	"github.com/quernmr/quern/dfs"
)

func addOwner(*dfs.Attributes, fs.FileInfo) {}

func access(string, uint32) error { return errors.ErrUnsupported }

func giveOwner(string, fs.FileInfo) bool { return false }
