package shuffle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Limits of a batch. The receiver holds a whole answer in memory.
const (
	BatchBytes      = 8 << 20 // of the blocks in an answer
	BatchMaps       = 256     // in a request
	BatchPartitions = 1000    // in a request
)

// maxBatchPartition is the maximum length of a partition that is in an answer.
const maxBatchPartition = 1 << 20

// Batch selects partitions of several map outputs of one task tracker.
type Batch struct {
	Job        wire.JobID
	Outputs    []BatchOutput // at most BatchMaps
	Partitions []int         // ascending; at most BatchPartitions
}

// BatchOutput names a map output.
type BatchOutput struct{ Map, Attempt int }

// batchPath is the last element of the path of a batch.
const batchPath = "batch"

// url returns the address of a batch.
func (b *Batch) url(base string) string {
	u := fmt.Appendf(nil, "%s%s%v/%s?maps=", base, pathPrefix, b.Job, batchPath)
	for i, o := range b.Outputs {
		if i > 0 {
			u = append(u, ',')
		}
		u = strconv.AppendInt(u, int64(o.Map), 10)
		u = append(u, '.')
		u = strconv.AppendInt(u, int64(o.Attempt), 10)
	}
	u = append(u, "&partitions="...)
	for i := 0; i < len(b.Partitions); {
		first := b.Partitions[i]
		last := first
		for i++; i < len(b.Partitions) && b.Partitions[i] == last+1; i++ {
			last++
		}
		u = strconv.AppendInt(u, int64(first), 10)
		if last > first {
			u = strconv.AppendInt(append(u, '-'), int64(last), 10)
		}
		if i < len(b.Partitions) {
			u = append(u, ',')
		}
	}
	return string(u)
}

// parseBatch parses the query of a batch.
func parseBatch(job wire.JobID, query url.Values) (*Batch, error) {
	b := &Batch{Job: job}
	for text := range strings.SplitSeq(query.Get("maps"), ",") {
		first, second, _ := strings.Cut(text, ".")
		m, err := parseNumber(first)
		attempt, errAttempt := parseNumber(second)
		if err = errors.Join(err, errAttempt); err != nil {
			return nil, err
		}
		b.Outputs = append(b.Outputs, BatchOutput{m, attempt})
	}
	for text := range strings.SplitSeq(query.Get("partitions"), ",") {
		from, to, ranged := strings.Cut(text, "-")
		first, err := parseNumber(from)
		last := first
		if ranged && err == nil {
			last, err = parseNumber(to)
		}
		if err != nil {
			return nil, err
		}
		if last < first || last-first >= BatchPartitions || len(b.Partitions) > 0 && first <= b.Partitions[len(b.Partitions)-1] {
			return nil, fmt.Errorf("partitions %s are not ascending, or too many", text)
		}
		for p := first; p <= last; p++ {
			b.Partitions = append(b.Partitions, p)
		}
	}
	if len(b.Outputs) > BatchMaps || len(b.Partitions) > BatchPartitions {
		return nil, fmt.Errorf("a batch may have %d maps and %d partitions, got %d and %d", BatchMaps, BatchPartitions, len(b.Outputs), len(b.Partitions))
	}
	return b, nil
}

// States of a section.
const (
	batchTable      = iota // the table and the blocks of the partitions
	batchMissing           // an error text: there is no such map output
	batchCorrupt           // an error text: its index is damaged
	batchUnreadable        // an error text: it cannot be read
	batchFull              // the answer is full: the outputs from this one on are not in it
	batchStates
)

const (
	sectionHeader = 9                            // bytes before the body of a section
	tableEntry    = 3*binary.MaxVarintLen64 + 8  // the most bytes of an entry
	maxBatchBody  = BatchPartitions * tableEntry // the most bytes of a body
	maxBatchError = 1 << 10                      // bytes of an error text
	batchGap      = 8 << 10                      // bytes between two partitions that are read together
	batchWindow   = 256 << 10                    // bytes that are read together
)

// batchSender writes an answer.
type batchSender struct {
	to      *bufio.Writer
	indexes *indexCache
	flush   func() // sends what was written to to; nil: not needed
	flushed time.Time
	sent    int64 // bytes of blocks
	body    []byte
	parts   []Partition
	window  []byte // blocks of some of parts
}

// flushEvery is how long complete sections may wait for others: the receiver counts the time without any as a stall.
const flushEvery = time.Second

// outputFiles returns the file of a map output, as for [Handler].
type outputFiles = func(job wire.JobID, m, attempt int) (file string, err error)

// send writes the answer to a batch. Only writing it fails.
func (s *batchSender) send(b *Batch, resolve outputFiles) error {
	for _, o := range b.Outputs {
		full, err := s.output(b, o, resolve)
		if err != nil {
			return err
		}
		if full {
			break
		}
		s.flushOld()
	}
	return s.to.Flush()
}

// flushOld sends sections that wait for long.
func (s *batchSender) flushOld() {
	if s.flush == nil || time.Since(s.flushed) < flushEvery {
		return
	}
	s.flushed = time.Now()
	_ = s.to.Flush() // the next write has the same error
	s.flush()
}

// output writes the section of a map output.
func (s *batchSender) output(b *Batch, o BatchOutput, resolve outputFiles) (full bool, err error) {
	file, err := resolve(b.Job, o.Map, o.Attempt)
	if err != nil {
		return false, s.refuse(err)
	}
	f, err := OpenFile(file)
	if err != nil {
		return false, s.refuse(err)
	}
	defer f.Close()
	index, err := s.indexes.read(f)
	if err != nil {
		return false, s.refuse(err)
	}
	return s.partitions(b, index, f)
}

// partitions writes the section of a map output with this index.
func (s *batchSender) partitions(b *Batch, index *Index, f io.ReaderAt) (full bool, err error) {
	if last := b.Partitions[len(b.Partitions)-1]; last >= len(index.Partitions) {
		return false, s.refuse(fmt.Errorf("partition %d of %d: %w", last, len(index.Partitions), fs.ErrNotExist))
	}
	s.body, s.parts = s.body[:0], s.parts[:0]
	var length int64
	for _, p := range b.Partitions {
		part := index.Partitions[p]
		if part.Length == 0 {
			continue
		}
		follows := uint64(0)
		if part.Length <= maxBatchPartition && length+part.Length <= BatchBytes {
			follows, length = 1, length+part.Length
			s.parts = append(s.parts, part)
		}
		s.body = binary.AppendUvarint(s.body, uint64(p))
		s.body = binary.AppendUvarint(s.body, uint64(part.Length)<<1|follows)
		s.body = binary.AppendUvarint(s.body, uint64(part.Records))
		s.body = binary.BigEndian.AppendUint64(s.body, part.Digest)
	}
	if s.sent+length > BatchBytes {
		return true, s.section(batchFull, nil)
	}
	s.sent += length
	if err := s.section(batchTable, s.body); err != nil {
		return false, err
	}
	return false, s.blocks(f)
}

// refuse writes an error instead of a map output. If this machine is exhausted, it ends a batch of local files.
func (s *batchSender) refuse(err error) error {
	if s.flush == nil && Exhausted(err) {
		return notReadable(wire.Segment{Map: -1}, err)
	}
	state := byte(batchUnreadable)
	if _, corrupt := errors.AsType[*CorruptError](err); corrupt {
		state = batchCorrupt
	} else if errors.Is(err, fs.ErrNotExist) {
		state = batchMissing
	}
	text := err.Error()
	return s.section(state, []byte(text[:min(len(text), maxBatchError)]))
}

func (s *batchSender) section(state byte, body []byte) error {
	var header [sectionHeader]byte
	header[0] = state
	binary.BigEndian.PutUint32(header[1:], uint32(len(body)))
	binary.BigEndian.PutUint32(header[5:], sectionSum(&header, body))
	_, err := s.to.Write(header[:])
	if err == nil {
		_, err = s.to.Write(body)
	}
	return err
}

// blocks writes the blocks of s.parts. Partitions that are close to each other are read together. If a read fails, a
// section with the error comes instead of the next partition.
func (s *batchSender) blocks(f io.ReaderAt) error {
	for from := 0; from < len(s.parts); {
		start := s.parts[from].Offset
		end, to := start+s.parts[from].Length, from+1
		for ; to < len(s.parts); to++ {
			p := s.parts[to]
			if p.Offset-end > batchGap || p.Offset+p.Length-start > batchWindow {
				break
			}
			end = p.Offset + p.Length
		}
		s.window = slices.Grow(s.window[:0], int(end-start))[:end-start]
		if _, err := f.ReadAt(s.window, start); err != nil {
			return s.refuse(err)
		}
		for _, p := range s.parts[from:to] { // without the gaps
			if err := s.to.WriteByte(batchTable); err != nil {
				return err
			}
			if _, err := s.to.Write(s.window[p.Offset-start:][:p.Length]); err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}
