package mapreduce

import (
	"fmt"
	"slices"
	"strings"
)

const (
	maxOpenNamed  = 64     // open files of WriteBy; each has a buffer of 256 KiB
	maxNamedFiles = 10_000 // files of WriteBy of an attempt
)

// WriteBy writes a record to a file of an output in Job.Outputs; name, such as a date of the
// record, is part of the file's name: <output>-<name>-r-00000, or -m- in a map. A
// name has letters, digits, '-', '_' and '='. In all else it is as [Write].
//
// At most 64 of these files are open at once. For another one, the file that was written
// longest ago is completed. Later records of its name go to <output>-<name>.1-r-00000, and so
// on. An attempt that writes more than 10,000 files fails.
func WriteBy[K, V any](t *Task, output, name string, k K, v V) {
	if !t.open {
		t.rejectLate(errLateWrite)
		return
	}
	if file := t.byName.current(t, output, name); file != "" {
		writeTo(t, output, file, k, v)
	}
}

// namedFiles are an attempt's files of WriteBy.
type namedFiles struct {
	pieces map[[2]string]int // completed files, by output and name
	recent []namedFile       // the open ones, the last written last
	files  int               // ever made
}

type namedFile struct {
	of   [2]string // output and name
	file string
}

// current returns the file for a name, and makes room for it. It returns "" after an error.
func (n *namedFiles) current(t *Task, output, name string) string {
	of, last := [2]string{output, name}, len(n.recent)-1
	if last >= 0 && n.recent[last].of == of {
		return n.recent[last].file
	}
	if at := slices.IndexFunc(n.recent, func(f namedFile) bool { return f.of == of }); at >= 0 {
		found := n.recent[at]
		n.recent = append(slices.Delete(n.recent, at, at+1), found)
		return found.file
	}
	if err := n.admit(t, name); err != nil {
		t.failHere(err)
		return ""
	}
	file := output + "-" + name
	if piece := n.pieces[of]; piece > 0 {
		file = fmt.Sprintf("%s.%d", file, piece)
	}
	n.files++
	n.recent = append(n.recent, namedFile{of, file})
	return file
}

// admit checks the name of a new file, and completes another one if too many are open.
func (n *namedFiles) admit(t *Task, name string) error {
	invalid := strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '='
	})
	switch {
	case name == "" || invalid:
		return misuse(fmt.Sprintf("WriteBy: a file cannot be named %.100q: a name has letters, digits, '-', '_' and '='", name))
	case len(name) > maxJobName/2:
		return misuse(fmt.Sprintf("WriteBy: the name %.40s… is too long: it has %d bytes, at most %d", name, len(name), maxJobName/2))
	case n.files == maxNamedFiles:
		return misuse(fmt.Sprintf("WriteBy: the attempt has written %d files, and file %q would be one more: use fewer names, or a reduce, which gets its keys in order", n.files, name))
	case len(n.recent) < maxOpenNamed:
		return nil
	}
	oldest := n.recent[0]
	n.recent = slices.Delete(n.recent, 0, 1)
	delete(t.writers, oldest.file)
	if n.pieces == nil {
		n.pieces = make(map[[2]string]int)
	}
	n.pieces[oldest.of]++
	return t.host.CloseOutput(oldest.file)
}
