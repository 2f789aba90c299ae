package streaming

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/runtime"
)

const xmlReader = "StreamXmlRecordReader"

// xmlRecords is StreamXmlRecordReader: a record begins and ends with a mark. A record belongs to the split in which its
// first mark begins.
//
// Without slowMatch the marks are texts. Like Hadoop's, the search goes on after the byte that does not match, so the mark
// <r> is not found in <<r>.
//
// With slowMatch the marks are patterns. They count only outside of CDATA sections, and a search looks at window bytes. In
// the first window a mark counts unless the end of a CDATA section follows: the split may begin within one.
type xmlRecords struct {
	Begin     string `json:"begin"`
	End       string `json:"end"`
	SlowMatch bool   `json:"slowMatch,omitempty"`
	Window    int    `json:"window,omitempty"` // the larger one of maxrec and lookahead
}

// parseReader parses the option -inputreader: a class, and NAME=VALUE of its settings.
func parseReader(text string) (*xmlRecords, error) {
	parts := strings.Split(text, ",")
	class := parts[0]
	for _, p := range packages {
		class = strings.TrimPrefix(class, p)
	}
	if class != xmlReader {
		return nil, fmt.Errorf("-inputreader %s: Quern runs no Java, and has of Hadoop's readers only %s", parts[0], xmlReader)
	}
	x, given := &xmlRecords{}, make(map[string]string)
	for _, setting := range parts[1:] {
		name, value, _ := strings.Cut(setting, "=")
		given[name] = value
	}
	x.Begin, x.End = given["begin"], given["end"]
	var ok bool
	if x.SlowMatch, ok = parseTruth(given["slowmatch"], false); !ok {
		return nil, fmt.Errorf("-inputreader: slowmatch=%s must be true or false", given["slowmatch"])
	}
	if x.Begin == "" || x.End == "" {
		return nil, fmt.Errorf("-inputreader %s: begin and end are required, as in %s,begin=<page>,end=</page>", text, xmlReader)
	}
	maxRecord, err := positive(given, "maxrec", 50_000)
	if err != nil {
		return nil, err
	}
	lookAhead, err := positive(given, "lookahead", 2*maxRecord)
	if err != nil {
		return nil, err
	}
	x.Window = max(maxRecord, lookAhead)
	return x, x.check()
}

// maxWindow limits the memory of a search.
const maxWindow = 1 << 26

func positive(given map[string]string, name string, byDefault int) (int, error) {
	text, ok := given[name]
	if !ok {
		return byDefault, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxWindow {
		return 0, fmt.Errorf("-inputreader: %s=%s must be a number from 1 to %d", name, text, maxWindow)
	}
	return n, nil
}

// check refuses patterns that cannot be searched for.
func (x *xmlRecords) check() error {
	for _, mark := range []string{x.Begin, x.End} {
		if !x.SlowMatch {
			continue
		}
		pattern, err := regexp.Compile(mark)
		switch {
		case err != nil:
			return fmt.Errorf("-inputreader: %w", err)
		case pattern.MatchString(""):
			return fmt.Errorf("-inputreader: the pattern %q matches the empty text", mark)
		}
	}
	return nil
}

// read yields the records of a split of a length. from also has what follows the split.
func (x *xmlRecords) read(from io.Reader, length int64, maxRecord int, yield func(record []byte) (more bool, err error)) error {
	in := bufio.NewReaderSize(from, 64<<10)
	var search finder = &textSearch{in: in, begin: []byte(x.Begin), end: []byte(x.End), max: maxRecord}
	if x.SlowMatch {
		search = newPatternSearch(in, x)
	}
	_, at, err := search.find(false) // Hadoop also searches before it is asked for the first record
	for found := true; found && err == nil && at < length; {
		if found, at, err = search.find(false); !found || err != nil || at >= length {
			break
		}
		if found, at, err = search.find(true); found && err == nil {
			found, err = yield(search.record())
		}
	}
	return err
}

// finder searches for the begin of a record, or for its end. It returns the position behind what it has read, or before
// a begin.
type finder interface {
	find(end bool) (found bool, at int64, err error)
	record() []byte
}

// textSearch searches for texts.
type textSearch struct {
	in         *bufio.Reader
	begin, end []byte
	at         int64
	max        int    // bytes of a record
	begun      bool   // the begin was just read, and belongs to the record
	again      []byte // bytes to read again
	buf        []byte
}

func (s *textSearch) record() []byte { return s.buf }

func (s *textSearch) find(end bool) (found bool, at int64, err error) {
	if !end && s.begun {
		return true, s.at, nil
	}
	mark := s.begin
	s.buf = s.buf[:0]
	if end {
		mark = s.end
		if s.begun { // the search for the end sees the begin again
			s.begun, s.again = false, s.begin
		}
	}
	for matched := 0; ; {
		b, err := s.next()
		switch {
		case err == io.EOF:
			return false, s.at, nil
		case err != nil:
			return false, s.at, err
		case b == mark[matched]:
			if matched++; matched == len(mark) {
				return s.matched(end, mark)
			}
			continue
		}
		if end {
			if s.buf = append(append(s.buf, mark[:matched]...), b); len(s.buf) > s.max {
				return false, s.at, fmt.Errorf("%w: the record that ends after byte %d is longer than %s=%d", runtime.ErrRecordTooLarge, s.at, runtime.RecordMaxBytes, s.max)
			}
		}
		s.at += int64(matched) + 1
		matched = 0
	}
}

func (s *textSearch) next() (b byte, err error) {
	if len(s.again) > 0 {
		b, s.again = s.again[0], s.again[1:]
		return b, nil
	}
	return s.in.ReadByte()
}

func (s *textSearch) matched(end bool, mark []byte) (bool, int64, error) {
	if end {
		s.buf, s.at = append(s.buf, mark...), s.at+int64(len(mark))
	} else {
		s.begun = true
	}
	return true, s.at, nil
}

// patternSearch searches for patterns outside of CDATA sections.
type patternSearch struct {
	in         *bufio.Reader // with a buffer for a window
	window     int
	begin, end *regexp.Regexp
	at         int64 // falls behind when a window has no mark, as in Hadoop
	synced     bool  // it is known whether the position is within a CDATA section
	buf        []byte
}

func newPatternSearch(in io.Reader, x *xmlRecords) *patternSearch {
	pattern := func(mark string) *regexp.Regexp { return regexp.MustCompile(`(CDATA\[)|(\]\]>)|(?:` + mark + `)`) } // check has compiled it
	return &patternSearch{in: bufio.NewReaderSize(in, 4*x.Window), window: x.Window, begin: pattern(x.Begin), end: pattern(x.End)}
}

func (s *patternSearch) record() []byte { return s.buf }

func (s *patternSearch) find(end bool) (found bool, at int64, err error) {
	text, err := s.in.Peek(s.window)
	if err != nil && err != io.EOF || len(text) == 0 {
		if err == io.EOF {
			err = nil
		}
		return false, s.at, err
	}
	pattern := s.begin
	if end {
		pattern = s.end
	}
	first, last, found, err := s.mark(pattern, text)
	switch {
	case err != nil:
		return false, s.at, err
	case !found: // Hadoop does not see this window again
		first = 0
		_, err = s.in.Discard(len(text))
		return false, s.at, err
	case end:
		first = last
		s.buf = slices.Clone(text[:last])
	}
	s.at += int64(first)
	_, err = s.in.Discard(first)
	return true, s.at, err
}

// States of a search.
const (
	unknownSection = iota
	outside
	inside
)

// mark returns where the first mark of a window begins and ends.
func (s *patternSearch) mark(pattern *regexp.Regexp, text []byte) (first, last int, found bool, err error) {
	state := unknownSection
	if s.synced {
		state = outside
	}
	for from := 0; from <= len(text); {
		at := pattern.FindSubmatchIndex(text[from:])
		if at == nil {
			break
		}
		begins, ends := at[2] >= 0, at[4] >= 0
		switch {
		case begins:
			state = inside
		case ends:
			state, found = outside, false
		case at[0] == at[1]: // as of \b: the search would not get ahead
			return 0, 0, false, runtime.Fatal(fmt.Errorf("-inputreader: begin or end matches an empty text within the file: %s", pattern))
		case !found:
			first, last, found = from+at[0], from+at[1], true
		}
		if s.synced = s.synced || state != unknownSection; found && state == outside && !begins && !ends {
			return first, last, true, nil
		}
		from += at[1]
	}
	s.synced = s.synced || state != unknownSection
	return first, last, found && state == unknownSection, nil
}
