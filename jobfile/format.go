package jobfile

import (
	"bytes"
	"runtime"
	"unicode/utf8"
)

// format is a file format, detected by the first bytes of a file.
type format uint8

const (
	formatUnknown format = iota
	formatEmpty
	formatText
	formatScript
	formatArchive
	formatCompressed
	formatELF
	formatMachO
	formatPE
)

func (k format) String() string {
	switch k {
	case formatEmpty:
		return "empty"
	case formatText:
		return "a text file"
	case formatScript:
		return "a script"
	case formatArchive:
		return "an archive, not a linked program"
	case formatCompressed:
		return "compressed"
	case formatELF:
		return "an ELF program"
	case formatMachO:
		return "a Mach-O (macOS) program"
	case formatPE:
		return "a PE (Windows) program"
	}
	return "of no known format"
}

// isProgram reports whether a machine can execute the format directly.
func (k format) isProgram() bool { return k >= formatELF }

// native returns the format that this machine executes.
func native() format {
	switch runtime.GOOS {
	case "darwin", "ios":
		return formatMachO
	case "windows":
		return formatPE
	}
	return formatELF
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
		return formatEmpty
	case begins("\x7fELF"):
		return formatELF
	case begins("\xfe\xed\xfa\xce", "\xfe\xed\xfa\xcf", "\xce\xfa\xed\xfe", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"):
		return formatMachO
	case begins("#!"):
		return formatScript
	case begins("!<arch>\n", "PK\x03\x04"):
		return formatArchive
	case begins("\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zXZ"):
		return formatCompressed
	case begins("MZ") && bytes.IndexByte(head, 0) >= 0:
		return formatPE
	case isText(head):
		return formatText
	}
	return formatUnknown
}

// isText reports whether head is UTF-8 text. Its last character may be cut.
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
