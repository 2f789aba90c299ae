package jobfile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// Go's linker writes this to the data of a program, at a multiple of 16:
//
//	0   "\xff Go buildinf:"
//	14  the size of a pointer
//	15  flags: 2, since Go 1.18: texts follow
//	32  the version of Go, then the module information; each has its length, a varint, before it
//
// Package debug/buildinfo finds it by the names of sections. Names may be compressed, and that package limits no
// memory. So this one looks through the data.
const (
	infoMagic    = "\xff Go buildinf:"
	infoHeader   = 32
	hasTexts     = 2
	infoFrame    = 16 // random bytes before and after the module information
	maxVersion   = 1 << 10
	maxInfo      = 1 << 20
	maxMagics    = 4  // a program may have the text itself
	infoPosition = 16 // divides the offset
)

// moduleInfo returns Go's module information, or "" if there is none. It looks at the data that the system
// maps writable, or in other formats than ELF at the whole file.
func moduleInfo(r io.ReaderAt, kind format) (string, error) {
	s := search{r: r, buf: make([]byte, chunk), bytes: MaxSize, magics: maxMagics}
	if kind != formatELF {
		return s.part(0, MaxSize)
	}
	progs, err := segments(r)
	if err != nil {
		return "", err
	}
	for _, p := range progs {
		if elf.ProgType(p.Type) != elf.PT_LOAD || elf.ProgFlag(p.Flags)&(elf.PF_W|elf.PF_X) != elf.PF_W {
			continue
		}
		if text, err := s.part(min(p.Off, MaxSize), min(p.Filesz, MaxSize)); text != "" || err != nil {
			return text, err
		}
	}
	return "", nil
}

// search is a search for module information. Its limits hold for all parts of the file together, which may overlap.
type search struct {
	r      io.ReaderAt
	buf    []byte
	bytes  int64 // that it may still look at
	magics int   // that it may still try
}

// part searches a part of the file.
func (s *search) part(offset, size uint64) (string, error) {
	begin, end := int64(offset)&^(infoPosition-1), int64(offset+size)
	for ; begin < end && s.bytes > 0 && s.magics > 0; begin += chunk {
		n, err := s.r.ReadAt(s.buf[:min(chunk, end-begin)], begin)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		s.bytes -= int64(n)
		if text := s.chunk(s.buf[:n], begin); text != "" || err != nil {
			return text, nil
		}
	}
	return "", nil
}

// chunk searches bytes that begin at an offset.
func (s *search) chunk(data []byte, begin int64) string {
	for i := 0; i+infoPosition <= len(data) && s.magics > 0; i += infoPosition {
		if !bytes.HasPrefix(data[i:], []byte(infoMagic)) || data[i+infoPosition-1]&hasTexts == 0 {
			continue
		}
		s.magics--
		if text := infoAt(s.r, begin+int64(i)+infoHeader); text != "" {
			return text
		}
	}
	return ""
}

// infoAt returns the module information of the texts at an offset, or "".
func infoAt(r io.ReaderAt, offset int64) string {
	_, next := textAt(r, offset, maxVersion)
	if next == 0 {
		return ""
	}
	text, _ := textAt(r, next, maxInfo)
	if len(text) < 2*infoFrame {
		return ""
	}
	return text[infoFrame : len(text)-infoFrame]
}

// textAt returns a text with its length before it, and the offset after it; 0: it is none of the limited length.
func textAt(r io.ReaderAt, offset int64, limit uint64) (text string, next int64) {
	head := make([]byte, binary.MaxVarintLen64)
	n, _ := r.ReadAt(head, offset) // at the end of the file, less is enough
	length, size := binary.Uvarint(head[:n])
	if size <= 0 || length > limit {
		return "", 0
	}
	offset += int64(size)
	data := make([]byte, length)
	if n, _ := r.ReadAt(data, offset); n < len(data) {
		return "", 0
	}
	return string(data), offset + int64(length)
}

// setting returns the value of a setting of the build, or "".
func setting(info, name string) string {
	return field(info, "build\t"+name+"=")
}

// field returns the rest of the line that begins with a text, or "".
func field(info, begin string) string {
	for line := range strings.Lines(info) {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			return strings.TrimSuffix(rest, "\n")
		}
	}
	return ""
}
