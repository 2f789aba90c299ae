package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

var (
	// ErrOutputExists reports an output directory that exists or belongs to another job.
	ErrOutputExists = errors.New("output exists")
	// ErrInput reports input that is missing, unreadable or of the wrong kind.
	ErrInput = errors.New("bad input")
	// ErrRecordTooLarge reports an input record above quern.record.max.bytes.
	ErrRecordTooLarge = errors.New("record too large")
	// ErrTruncated reports an input file that ends too early.
	ErrTruncated = errors.New("file is truncated")
	// ErrChanged reports an input or side file that changed since the job's setup.
	ErrChanged = errors.New("file has changed since the job started")
	// ErrPlanDiffers reports a program that built a job other than the submitted one.
	ErrPlanDiffers = errors.New("job is not deterministic")
	// ErrCorrupt reports a damaged file in one of Quern's own formats.
	ErrCorrupt = errors.New("file is corrupt")
	// ErrPanic reports that the job's own code panicked.
	ErrPanic = errors.New("panic")
)

// Fatal marks an error that would fail every attempt, so that the job fails at once. It
// returns nil for nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &fatalError{error: err}
}

// fatalInput marks an error that would fail every attempt of this task because of its own
// input, as a truncated file. Other tasks may succeed.
func fatalInput(err error) error { return &fatalError{error: err, inputOnly: true} }

// BadInput is fatalInput for formats of other packages. It returns nil for nil.
func BadInput(err error) error {
	if err == nil {
		return nil
	}
	return fatalInput(fmt.Errorf("%w: %w", ErrInput, err))
}

type fatalError struct {
	error
	inputOnly bool // see fatalInput
}

func (e *fatalError) Unwrap() error { return e.error }

func isFatal(err error) bool {
	_, ok := errors.AsType[*fatalError](err)
	return ok
}

// isBadInput reports whether the outermost mark of an error is fatalInput's.
func isBadInput(err error) bool {
	fatal, ok := errors.AsType[*fatalError](err)
	return ok && fatal.inputOnly || !ok && errors.Is(err, shuffle.ErrRecordTooLarge)
}

// protect runs f and turns its panic into an error with the stack, and with the place that where
// returns. where may be nil.
func protect(f func() error, where func() string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s\n\n%s", ErrPanic, wire.Truncate(fmt.Sprint(p), wire.MaxText/2), panicStack())
			if where != nil && where() != "" {
				err = fmt.Errorf("%s: %w", where(), err)
			}
		}
	}()
	return f()
}

const maxStack = 16 << 10

// panicStack returns the stack from the panic up to protect.
func panicStack() string {
	stack := string(debug.Stack())
	if _, below, ok := strings.Cut(stack, "\npanic("); ok {
		if _, below, ok = strings.Cut(below, "\n\t"); ok { // the position in package runtime
			if _, below, ok = strings.Cut(below, "\n"); ok {
				stack = below
			}
		}
	}
	if above, _, ok := strings.Cut(stack, "quern/runtime.protect("); ok {
		stack = above[:strings.LastIndexByte(above, '\n')+1]
	}
	if len(stack) > maxStack {
		stack = stack[:maxStack] + "\n…"
	}
	return strings.TrimSpace(stack)
}
