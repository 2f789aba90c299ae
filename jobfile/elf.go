package jobfile

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// maxSegments limits the segments of an ELF file. Linkers make about a dozen.
const maxSegments = 128

// segments returns the program headers of an ELF file. It does not read sections: they are not needed to run the
// file, and may be compressed.
func segments(r io.ReaderAt) ([]elf.Prog64, error) {
	ident := make([]byte, elf.EI_NIDENT)
	if _, err := r.ReadAt(ident, 0); err != nil {
		return nil, fmt.Errorf("damaged ELF header: %w", err)
	}
	read := func(offset uint64, into any) error {
		var order binary.ByteOrder = binary.LittleEndian
		if elf.Data(ident[elf.EI_DATA]) == elf.ELFDATA2MSB {
			order = binary.BigEndian
		}
		if err := binary.Read(io.NewSectionReader(r, int64(offset&math.MaxInt64), int64(binary.Size(into))), order, into); err != nil {
			return fmt.Errorf("damaged ELF header: %w", err)
		}
		return nil
	}
	if elf.Class(ident[elf.EI_CLASS]) == elf.ELFCLASS64 {
		var head elf.Header64
		if err := read(0, &head); err != nil {
			return nil, err
		}
		progs, err := make64(head.Phnum)
		if err != nil {
			return nil, err
		}
		return progs, read(head.Phoff, progs)
	}
	var head elf.Header32
	if err := read(0, &head); err != nil {
		return nil, err
	}
	progs, err := make64(head.Phnum)
	if err != nil {
		return nil, err
	}
	narrow := make([]elf.Prog32, len(progs))
	err = read(uint64(head.Phoff), narrow)
	for i, p := range narrow {
		progs[i] = elf.Prog64{Type: p.Type, Flags: p.Flags, Off: uint64(p.Off), Filesz: uint64(p.Filesz)}
	}
	return progs, err
}

func make64(n uint16) ([]elf.Prog64, error) {
	if n > maxSegments {
		return nil, fmt.Errorf("damaged ELF header: %d segments, more than %d", n, maxSegments)
	}
	return make([]elf.Prog64, n), nil
}
