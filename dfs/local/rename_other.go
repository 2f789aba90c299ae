//go:build !linux

package local

import "errors"

func renameNoReplace(from, to string) error { return errors.ErrUnsupported }
