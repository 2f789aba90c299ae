package javatext

import "io"

// flushedSize is how much a JSONWriter keeps.
const flushedSize = 64 << 10

// JSONWriter writes JSON piece by piece, since a value can print as much more than its bytes. After an error it keeps
// nothing.
type JSONWriter struct {
	To  io.Writer
	Out []byte // what was not written; pieces are appended
	Err error  // the first, of To or of a piece that cannot be written
}

// Text appends text as it is.
func (w *JSONWriter) Text(s string) { w.Out = append(w.Out, s...) }

// Comma separates element i from the one before it.
func (w *JSONWriter) Comma(i int) {
	if i > 0 {
		w.Text(",")
	}
}

// Name begins member i of an object.
func (w *JSONWriter) Name(i int, name string) {
	w.Comma(i)
	w.Out = append(AppendJSON(w.Out, name), ':')
}

// Spill writes what was appended if it is much.
func (w *JSONWriter) Spill() error {
	if len(w.Out) > flushedSize {
		return w.Flush()
	}
	return w.Err
}

// Flush writes what was appended.
func (w *JSONWriter) Flush() error {
	if w.Err == nil {
		_, w.Err = w.To.Write(w.Out)
	}
	w.Out = w.Out[:0]
	return w.Err
}
