package shuffle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
)

var (
	errCombineOrder  = errors.New("combiner emitted a key that is smaller than the one before")
	errCombineUnread = errors.New("combiner did not read all records")
)

// combine passes sorted records to Combine and writes its output.
func (c *Collector) combine(w *segmentWriter, in *merge) error {
	counted := &countedRecords{merge: in}
	var last []byte
	emitted := int64(0)
	err := c.cfg.Combine(counted, func(key, value []byte) error {
		if bytes.Compare(key, last) < 0 {
			return fmt.Errorf("%w: %.64q after %.64q", errCombineOrder, key, last)
		}
		if size := int64(len(key) + len(value)); size > c.cfg.MaxRecord {
			return fmt.Errorf("%w: combiner emitted %d bytes, the limit is %d", ErrRecordTooLarge, size, c.cfg.MaxRecord)
		}
		last = append(last[:0], key...)
		emitted++
		return w.add(key, value)
	})
	// Prefer an input error: it may have caused the combiner's error. If the combiner
	// returned early, its unread records would be lost.
	err = cmp.Or(in.Err(), err)
	if err == nil && counted.Next() {
		err = errCombineUnread
	}
	c.stats.CombineIn += counted.n
	c.stats.CombineOut += emitted
	return err
}

// countedRecords counts the records that are read.
type countedRecords struct {
	*merge
	n int64
}

func (r *countedRecords) Next() bool {
	if !r.merge.Next() {
		return false
	}
	r.n++
	return true
}

func (r *countedRecords) Repeats() int {
	n := r.merge.Repeats()
	r.n += int64(n)
	return n
}
