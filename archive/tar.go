package archive

import (
	"archive/tar"
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/quernmr/quern/compression"
)

// untar unpacks a tar file, compressed with a codec unless that is nil.
func (t *target) untar(raw io.Reader, codec *compression.Codec) error {
	in := &ended{r: raw}
	if codec != nil {
		plain := codec.NewReader()
		defer plain.Close()
		plain.Reset(raw, compression.Whole)
		in.r = plain
	} else {
		in.r = bufio.NewReaderSize(raw, 256<<10)
	}
	for all := tar.NewReader(in); ; {
		h, err := all.Next()
		if err == io.EOF {
			break
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // names are checked below
			return err
		}
		if err := t.tarMember(h, all); err != nil {
			return err
		}
	}
	if in.ended && codec == nil {
		return fmt.Errorf("it does not end with blocks of zeros, as a tar file does: %w", io.ErrUnexpectedEOF)
	}
	_, err := io.Copy(io.Discard, &limited{t, in}) // compares the checksum
	return err
}

func (t *target) tarMember(h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeDir:
		name, err := t.place(h.Name)
		if err != nil {
			return err
		}
		return t.dir(name)
	case tar.TypeReg, tar.TypeGNUSparse:
		return t.file(h.Name, h.FileInfo().Mode(), content)
	case tar.TypeSymlink:
		return t.link(h.Name, h.Linkname)
	case tar.TypeLink:
		return t.hardLink(h.Name, h.Linkname)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return refuse(h.Name, "is a device or FIFO")
	}
	return refuse(h.Name, "has the type %q, which is no file, directory or link", h.Typeflag)
}

// ended notes that a reader has reached its end.
type ended struct {
	r     io.Reader
	ended bool
}

func (e *ended) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.ended = e.ended || err == io.EOF
	return n, err
}
