package fsshell

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quernmr/quern/cmd/internal/interrupt"
	"github.com/quernmr/quern/dfs"
)

// replicated is a file system that keeps replicas of blocks. Others keep one.
type replicated interface {
	SetReplication(name string, replicas int) (done bool, err error)
	dfs.Locator
}

// checksummed is a file system that has checksums of whole files.
type checksummed interface {
	Checksum(name string) (algorithm string, sum []byte, err error)
}

// extensible is a file system that changes the end of a file.
type extensible interface {
	// Append opens a file for more content. Abort keeps what it had.
	Append(name string) (dfs.Writer, error)

	// Truncate shortens a file. If it is not done, the file is locked until it has its new length.
	Truncate(name string, length int64) (done bool, err error)
}

// spacious is a file system that knows its space.
type spacious interface {
	Space(name string) (dfs.Space, error)
}

// replicaPause is how long -setrep -w waits before it looks again, as in Hadoop.
const replicaPause = 10 * time.Second

// setrep sets the number of replicas of files.
func (r *call) setrep(args []string) error {
	replicas, err := r.number(args[0], math.MaxInt16, "Illegal replication, a positive integer expected")
	if err != nil {
		return err
	}
	if replicas < 1 {
		return usagef("replication must be >= 1")
	}
	var set []place
	r.flag["R"] = true
	err = r.each(args[1:], r.below(func(p place) error {
		if p.Dir {
			return nil
		}
		if files, ok := p.files.(replicated); ok {
			if done, err := files.SetReplication(p.url, int(replicas)); err != nil {
				return err
			} else if !done {
				return worded("Could not set replication for: %s", p.text)
			}
		}
		r.println(fmt.Sprintf("Replication %d set: %s", replicas, p.text))
		set = append(set, p)
		return nil
	}))
	if !r.flag["w"] || err != nil {
		return err
	}
	for _, p := range set {
		if err := r.waitForReplicas(p, int(replicas)); err != nil {
			return err
		}
	}
	return nil
}

// number parses a number with Hadoop's messages.
func (r *call) number(text string, most int64, want string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil || n > math.MaxInt32 && most < math.MaxInt32:
		r.warn(want)
		return 0, usagef("For input string: \"%s\"", text)
	case n > most:
		r.warn(want)
		return 0, usagef("Value out of range. Value:\"%s\" Radix:10", text)
	}
	return n, nil
}

// waitForReplicas waits until each block of a file has as many replicas.
func (r *call) waitForReplicas(p place, want int) error {
	files, ok := p.files.(replicated)
	if !ok && want != 1 {
		return &pathError{p.text, "This file system has one replica of a file, so -w would never end"}
	}
	r.out.WriteString("Waiting for " + p.text + " ...")
	for warned := false; ok; {
		found, err := files.Locate(p.url)
		if err != nil {
			return err
		}
		most, done := 0, true
		for _, f := range found {
			for _, b := range f.Blocks {
				done = done && len(b.Replicas) == want
				most = max(most, len(b.Replicas))
			}
		}
		if done {
			break
		}
		if most > want && !warned {
			r.println("\nWARNING: the waiting time may be long for DECREASING the number of replications.")
			warned = true
		}
		r.out.WriteByte('.')
		if err := r.out.Flush(); err != nil {
			return err
		}
		if err := wait(r.ctx, replicaPause); err != nil {
			return err
		}
	}
	r.println(" done")
	return nil
}

// checksum prints the checksums of files that the file system has.
func (r *call) checksum(args []string) error {
	return r.each(args, func(p place) error {
		if p.Dir {
			return &pathError{p.text, isDirectory}
		}
		line := p.text + "\tNONE"
		if files, ok := p.files.(checksummed); ok {
			algorithm, sum, err := files.Checksum(p.url)
			if err != nil {
				return err
			}
			line = fmt.Sprintf("%s\t%s\t%x", p.text, algorithm, sum)
		}
		if r.flag["v"] {
			line += fmt.Sprintf("\tBlockSize=%d", p.BlockSize)
		}
		r.println(line)
		return nil
	})
}

// extensibleAt returns the file system of a path, if it changes the end of files.
func (r *call) extensibleAt(p place) (extensible, error) {
	files, ok := p.files.(extensible)
	if !ok {
		return nil, usagef("%s: this file system does not change files, neither for Hadoop", p.text)
	}
	return files, nil
}

// appendToFile appends local files, or standard input, to a file.
func (r *call) appendToFile(args []string) error {
	if len(args) < 2 {
		return errors.New("missing destination argument")
	}
	sources := args[:len(args)-1]
	to, err := r.target(args[len(args)-1])
	if err != nil {
		return err
	}
	files, err := r.extensibleAt(to)
	switch {
	case err != nil:
		return err
	case to.Attributes != nil && to.Dir:
		_, path := cut(to.url)
		return worded("Cannot append to directory %s; already exists as a directory.", path)
	case to.Attributes == nil:
		if err := to.files.MkdirAll(dfs.Dir(to.url)); err != nil {
			return err
		}
		if err := fill(to.files, to.url, strings.NewReader("")); err != nil {
			return err
		}
	}
	w, err := files.Append(to.url)
	if err != nil {
		return err
	}
	if err := r.appendAll(w, sources); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// appendAll writes the content of local files, or of standard input.
func (r *call) appendAll(w io.Writer, sources []string) error {
	for _, arg := range sources {
		if arg == "-" && len(sources) > 1 {
			return errors.New("stdin (-) must be the sole input argument when present")
		}
	}
	if sources[0] == "-" {
		_, err := io.Copy(w, interrupt.Reader{Context: r.ctx, Reader: r.Stdin})
		return err
	}
	for _, arg := range sources {
		p, err := r.local(arg)
		if err == nil && p.Attributes == nil {
			_, path := cut(p.url)
			err = errors.New(path)
		}
		if err != nil {
			return err
		}
		f, err := p.open()
		if err != nil {
			return err
		}
		_, err = io.Copy(w, interrupt.Reader{Context: r.ctx, Reader: f})
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// recoveryPause is how long -truncate -w waits before it looks again, as in Hadoop.
const recoveryPause = time.Second

// truncate shortens files.
func (r *call) truncate(args []string) error {
	length, err := r.number(args[0], math.MaxInt64, "Illegal length, a non-negative integer expected")
	if err != nil {
		return err
	}
	var locked []place
	err = r.each(args[1:], func(p place) error {
		if p.Dir {
			return &pathError{p.text, isDirectory}
		}
		if length > p.Length {
			return usagef("Cannot truncate to a larger file size. Current size: %d, truncate size: %d.", p.Length, length)
		}
		files, err := r.extensibleAt(p)
		if err != nil {
			return err
		}
		done, err := files.Truncate(p.url, length)
		switch {
		case err != nil:
			return err
		case done:
			r.println(fmt.Sprintf("Truncated %s to length: %d", p.text, length))
		case r.flag["w"]:
			locked = append(locked, p)
		default:
			r.println(fmt.Sprintf("Truncating %s to length: %d. Wait for block recovery to complete before further updating this file.", p.text, length))
		}
		return nil
	})
	for _, p := range locked {
		if err := r.waitForLength(p, length); err != nil {
			return err
		}
	}
	return err
}

func (r *call) waitForLength(p place, length int64) error {
	r.println("Waiting for " + p.text + " ...")
	if err := r.out.Flush(); err != nil {
		return err
	}
	for {
		now, err := p.files.Attributes(p.url)
		if err != nil {
			return err
		}
		if now.Length == length {
			break
		}
		if err := wait(r.ctx, recoveryPause); err != nil {
			return err
		}
	}
	r.println(fmt.Sprintf("Truncated %s to length: %d", p.text, length))
	return nil
}

// df shows the space of file systems.
func (r *call) df(args []string) error {
	if len(args) == 0 {
		args = []string{"/"}
	}
	rows := [][5]string{{"Filesystem", "Size", "Used", "Available", "Use%"}}
	err := r.each(args, func(p place) error {
		files, ok := p.files.(spacious)
		if !ok {
			return &pathError{p.text, "The space of this file system is not known"}
		}
		s, err := files.Space(p.url)
		if err != nil {
			return err
		}
		top := fileSystem(p.url)
		if top == "file://" {
			top += "/"
		}
		human := r.flag["h"]
		rows = append(rows, [5]string{top, size(s.Capacity, human), size(s.Used, human), size(s.Free, human), fmt.Sprintf("%.0f%%", 100*float64(s.Used)/float64(s.Capacity))})
		return nil
	})
	if len(rows) == 1 {
		return err
	}
	var widths [5]int
	for _, row := range rows {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", widths[0], row[0])
		for i := 1; i < len(row); i++ {
			line += fmt.Sprintf("  %*s", widths[i], row[i])
		}
		r.println(line)
	}
	return err
}
