package archive

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// encrypted is a bit of a zip member's flags.
const encrypted = 1

// Signatures of a zip file's records.
const (
	memberRecord = "PK\x01\x02" // of a member, in the directory at the end of the file
	endRecord64  = "PK\x06\x06" // of the directory's end, with the number of members at endMembers
	endSize64    = 56
	endMembers   = 32

	endMost = 65 << 10 / 46 // members that Go's reader meets twice, as it looks for the directory's end
)

// directory is what Go's reader reads as the directory of a zip file. The reader keeps it in memory: 300 bytes for each
// member beside its name. Reads fail beyond the limits.
type directory struct {
	io.ReaderAt
	limits  Limits
	members int
	bytes   int64  // read so far
	end     int64  // of the last read
	last    []byte // of that read, where a signature can begin
	done    bool   // the directory has been read
}

func (d *directory) ReadAt(p []byte, off int64) (n int, err error) {
	n, err = d.ReaderAt.ReadAt(p, off)
	if d.done {
		return n, err
	}
	read := p[:n]
	if off == d.end {
		read = append(d.last, read...)
	}
	d.members += bytes.Count(read, []byte(memberRecord))
	d.bytes, d.end = d.bytes+int64(n), off+int64(n)
	d.last = bytes.Clone(read[max(0, len(read)-len(memberRecord)+1):])
	claimed := uint64(0) // Go makes room for so many
	if n == endSize64 && bytes.HasPrefix(p, []byte(endRecord64)) {
		claimed = binary.LittleEndian.Uint64(p[endMembers:])
	}
	most := d.limits.Entries
	if d.members > most+endMost || claimed > uint64(most) || d.bytes > 1<<20+256*int64(most) {
		return 0, fmt.Errorf("%w: it has more than %d members, or their names are too long for so many", ErrRefused, most)
	}
	return n, err
}

// unzip unpacks a zip file.
func (t *target) unzip(r io.ReaderAt, size int64) error {
	d := &directory{ReaderAt: r, limits: t.limits}
	all, err := zip.NewReader(d, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked below
		return err
	}
	d.done = true
	for _, f := range all.File {
		if err := t.zipMember(f); err != nil {
			return err
		}
	}
	return nil
}

func (t *target) zipMember(f *zip.File) error {
	mode := f.Mode()
	switch {
	case f.Flags&encrypted != 0:
		return refuse(f.Name, "is encrypted")
	case mode.IsDir() || strings.HasSuffix(f.Name, "/"):
		name, err := t.place(f.Name)
		if err != nil {
			return err
		}
		return t.dir(name)
	case !mode.IsRegular() && mode.Type() != fs.ModeSymlink:
		return refuse(f.Name, "is a device, FIFO or socket")
	}
	content, err := f.Open()
	if err != nil {
		return fmt.Errorf("member %q: %w", f.Name, err)
	}
	defer content.Close()
	if mode.IsRegular() {
		return t.file(f.Name, mode, content)
	}
	text, err := io.ReadAll(io.LimitReader(content, maxName+1))
	if err != nil {
		return fmt.Errorf("member %q: %w", f.Name, err)
	}
	return t.link(f.Name, string(text))
}
