package jobfile

import (
	"bytes"
	"runtime"
	"unicode/utf8"
)

// format is a file format, found from the first bytes.
type format uint8

const (
	kindUnknown format = iota
	kindEmpty
	kindText
	kindScript
	kindArchive
	kindCompressed
	kindELF
	kindMachO
	kindPE
)

func (k format) String() string {
	switch k {
	case kindEmpty:
		return "empty"
	case kindText:
		return "a text file"
	case kindScript:
		return "a script"
	case kindArchive:
		return "an archive, not a linked program"
	case kindCompressed:
		return "compressed"
	case kindELF:
		return "an ELF program"
	case kindMachO:
		return "a Mach-O (macOS) program"
	case kindPE:
		return "a PE (Windows) program"
	}
	return "of no known format"
}

// program says whether some machine can execute the format directly.
func (k format) program() bool { return k >= kindELF }

// native returns the format that this machine executes.
func native() format {
	switch runtime.GOOS {
	case "darwin", "ios":
		return kindMachO
	case "windows":
		return kindPE
	}
	return kindELF
}

// sniff returns the format of a file that begins with head.
func sniff(head []byte) format {
	begins := func(magic ...string) bool {
		for _, m := range magic {
			if bytes.HasPrefix(head, []byte(m)) {
				return true
			}
		}
		return false
	}
	switch {
	case len(head) == 0:
		return kindEmpty
	case begins("\x7fELF"):
		return kindELF
	case begins("\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"):
		return kindMachO
	case begins("#!"):
		return kindScript
	case begins("!<arch>\n", "PK\x03\x04"):
		return kindArchive
	case begins("\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zXZ"):
		return kindCompressed
	case begins("MZ") && bytes.IndexByte(head, 0) >= 0:
		return kindPE
	case isText(head):
		return kindText
	}
	return kindUnknown
}

// isText says whether head is UTF-8 text, with a possibly cut last character.
func isText(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 {
		return false
	}
	for cut := range min(utf8.UTFMax, len(head)) {
		if utf8.Valid(head[:len(head)-cut]) {
			return true
		}
	}
	return false
}
