package archive

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// encrypted is a bit of a zip member's flags.
const encrypted = 1

// unzip unpacks a zip file. Go's reader takes memory for as many members as the file has room for.
func (t *target) unzip(r io.ReaderAt, size int64) error {
	all, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked below
		return err
	}
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
