// Package interrupt ends copies when their context ends.
package interrupt

import (
	"context"
	"io"
)

// Reader fails when its context has ended.
type Reader struct {
	Context context.Context
	io.Reader
}

func (r Reader) Read(p []byte) (int, error) {
	if r.Context.Err() != nil {
		return 0, context.Cause(r.Context)
	}
	return r.Reader.Read(p)
}

// Writer fails when its context has ended.
type Writer struct {
	Context context.Context
	io.Writer
}

func (w Writer) Write(p []byte) (int, error) {
	if w.Context.Err() != nil {
		return 0, context.Cause(w.Context)
	}
	return w.Writer.Write(p)
}
