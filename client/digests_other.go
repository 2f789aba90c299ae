//go:build !linux

package client

import (
	"io/fs"
	"time"
)

// identify returns nothing: files are hashed each time.
func identify(fs.FileInfo) (identity string, changed time.Time) { return "", time.Time{} }
