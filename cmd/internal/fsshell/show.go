package fsshell

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/cmd/internal/interrupt"
	"github.com/quernmr/quern/dfs"
)

// kilobyte is what -head and -tail print.
const kilobyte = 1024

// open opens a file, and refuses directories as Hadoop does.
func (p place) open() (dfs.File, error) {
	if p.Dir {
		return nil, &pathError{p.text, isDirectory}
	}
	return p.files.Open(p.url)
}

// checksums refuses -ignoreCrc where it would have a meaning.
func (r *call) checksums(p place) error {
	if r.flag["ignoreCrc"] && !strings.HasPrefix(p.url, "file:") {
		return fmt.Errorf("%s: %s always verifies checksums of this file system: -ignoreCrc is not supported", p.text, r.Program)
	}
	return nil
}

// reading returns a function that opens a file, calls do, and closes the file.
func (r *call) reading(do func(p place, f dfs.File) error) func(p place) error {
	return func(p place) error {
		if err := r.checksums(p); err != nil {
			return err
		}
		f, err := p.open()
		if err != nil {
			return err
		}
		defer f.Close()
		return do(p, f)
	}
}

// cat prints files as they are.
func (r *call) cat(args []string) error {
	return r.each(args, r.reading(func(_ place, f dfs.File) error { return r.print(f) }))
}

// print copies to standard output. A bufio.Writer's own ReadFrom would keep errors of reading as its own.
func (r *call) print(from io.Reader) error {
	_, err := io.Copy(struct{ io.Writer }{r.out}, interrupt.Reader{Context: r.ctx, Reader: from})
	return err
}

// one returns the only argument, which is no pattern, and must be a file.
func (r *call) one(args []string, do func(p place) error) error {
	p, err := r.given(args[0])
	if err != nil {
		return err
	}
	return r.must(p, do)
}

func (r *call) head(args []string) error {
	return r.one(args, r.reading(func(_ place, f dfs.File) error { return r.print(io.LimitReader(f, kilobyte)) }))
}

// tailPause is how long -tail -f waits before it looks again, as in Hadoop.
const tailPause = 5 * time.Second

func (r *call) tail(args []string) error {
	pause := tailPause
	if text, ok := r.value["s"]; ok {
		millis, err := strconv.Atoi(text)
		if err != nil || millis < 0 {
			return usagef("-s needs a number of milliseconds, got %q", text)
		}
		pause = time.Duration(millis) * time.Millisecond
	}
	return r.one(args, func(p place) error {
		at, err := r.printFrom(p, -kilobyte)
		for err == nil && r.flag["f"] {
			if err = r.out.Flush(); err == nil {
				err = wait(r.ctx, pause)
			}
			if err == nil {
				at, err = r.printFrom(p, at)
			}
		}
		return err
	})
}

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(pause):
		return nil
	}
}

// printFrom prints a file from an offset on, negative from the end, and returns its size.
func (r *call) printFrom(p place, offset int64) (end int64, err error) {
	f, err := p.open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size := f.Info().Size
	if offset < 0 {
		offset = max(0, size+offset)
	}
	if offset >= size {
		return size, nil // also if the file became shorter
	}
	return size, r.print(io.NewSectionReader(f, offset, size-offset))
}

// text prints files decoded.
func (r *call) text(args []string) error {
	return r.each(args, r.reading(func(p place, f dfs.File) error {
		if err := r.decode(p, f); err != nil {
			return fmt.Errorf("%s: %w", p.text, err)
		}
		return nil
	}))
}
