package web

import "github.com/quernmr/quern/wire"

type (
	// PartitionSizes says how a job's map output is spread over its partitions. A size is what was gathered so
	// far.
	PartitionSizes struct {
		Total       int             `json:"total"`       // number of partitions
		Known       int             `json:"known"`       // number of partitions with a known size
		Gathered    int             `json:"gathered"`    // number of partitions that are completely gathered, or need not be
		Bytes       int64           `json:"bytes"`       // of all partitions
		MedianBytes int64           `json:"medianBytes"` // of the known sizes, within an eighth
		Buckets     []SizeBucket    `json:"buckets"`     // a histogram, smallest sizes first, without empty buckets
		Largest     []PartitionSize `json:"largest"`     // the largest partitions, at most ten
	}

	// SizeBucket counts the partitions with sizes in a range.
	SizeBucket struct {
		From       int64 `json:"from"` // bytes
		To         int64 `json:"to"`   // exclusive
		Partitions int   `json:"partitions"`
	}

	// PartitionSize is the size of one partition.
	PartitionSize struct {
		Partition int   `json:"partition"`
		Bytes     int64 `json:"bytes"`
	}

	// HotKey is a key with a large part of the records of its partition.
	HotKey struct {
		Partition  int     `json:"partition"`
		Key        string  `json:"key"`                // text without control characters, cut after 64 bytes
		Raw        bool    `json:"raw,omitempty"`      // the key shows encoded bytes, since its type is not known yet
		Combined   bool    `json:"combined,omitempty"` // the maps combine: records and bytes are about combined records
		Records    int64   `json:"records"`            // read so far
		Bytes      int64   `json:"bytes"`
		OfBytes    int64   `json:"ofBytes"`              // bytes of all records of the partition read so far
		Share      float64 `json:"share"`                // bytes by ofBytes
		ShareOfJob float64 `json:"shareOfJob,omitempty"` // bytes by those of all partitions gathered so far
	}

	// SlotTime says what a job's slots did, as far as this leader knows.
	SlotTime struct {
		TotalMillis    int64     `json:"totalMillis"`              // the sum of uses
		Uses           []SlotUse `json:"uses"`                     // without those that took no time
		DeferredMillis int64     `json:"deferredMillis,omitempty"` // of free map slots that it left while its maps waited for local ones; not in the total
	}

	// SlotUse is the slot time that one use took.
	SlotUse struct {
		Use      string `json:"use"` // "start", "read", "map", "shuffle", "reduce", "commit", "failed", "killed", "speculative", "rerun", "lost", "gathering", "running"
		Attempts int    `json:"attempts"`
		Millis   int64  `json:"millis"`
	}
)

func sizesOf(p *wire.PartitionSizes) *PartitionSizes {
	if p == nil {
		return nil
	}
	s := &PartitionSizes{
		Total: p.Total, Known: p.Known, Gathered: p.Gathered, Bytes: p.Bytes, MedianBytes: p.Median,
		Buckets: make([]SizeBucket, len(p.Buckets)), Largest: make([]PartitionSize, len(p.Largest)),
	}
	for i := range p.Buckets {
		s.Buckets[i] = SizeBucket(p.Buckets[i])
	}
	for i := range p.Largest {
		s.Largest[i] = PartitionSize(p.Largest[i])
	}
	return s
}

// toWire is the inverse of [sizesOf].
func (s *PartitionSizes) toWire() *wire.PartitionSizes {
	if s == nil {
		return nil
	}
	p := &wire.PartitionSizes{Total: s.Total, Known: s.Known, Gathered: s.Gathered, Bytes: s.Bytes, Median: s.MedianBytes}
	for _, b := range s.Buckets {
		p.Buckets = append(p.Buckets, wire.SizeBucket(b))
	}
	for _, x := range s.Largest {
		p.Largest = append(p.Largest, wire.PartitionSize(x))
	}
	return p
}

func hotKeysOf(s *wire.JobStatus) (list []HotKey) {
	for _, k := range s.HotKeys {
		x := HotKey{Partition: k.Partition, Key: k.Key, Raw: k.Raw, Combined: k.Combined, Records: k.Records, Bytes: k.Bytes, OfBytes: k.Of, Share: share(k.Bytes, k.Of)}
		if s.Partitions != nil {
			x.ShareOfJob = share(k.Bytes, s.Partitions.Bytes)
		}
		list = append(list, x)
	}
	return list
}

func share(part, of int64) float64 { return min(float64(part)/float64(max(of, 1)), 1) }

// wireHotKeys is the inverse of [hotKeysOf].
func (j *Job) wireHotKeys() (list []wire.HotKey) {
	for _, k := range j.HotKeys {
		list = append(list, wire.HotKey{Partition: k.Partition, Key: k.Key, Raw: k.Raw, Combined: k.Combined, Records: k.Records, Bytes: k.Bytes, Of: k.OfBytes})
	}
	return list
}

func slotTimeOf(t *wire.SlotTime) *SlotTime {
	if t == nil {
		return nil
	}
	s := &SlotTime{TotalMillis: t.Total, DeferredMillis: t.Deferred, Uses: make([]SlotUse, len(t.Uses))}
	for i, u := range t.Uses {
		s.Uses[i] = SlotUse{Use: string(u.Use), Attempts: u.Attempts, Millis: u.Millis}
	}
	return s
}

// toWire is the inverse of [slotTimeOf].
func (s *SlotTime) toWire() *wire.SlotTime {
	if s == nil {
		return nil
	}
	t := &wire.SlotTime{Total: s.TotalMillis, Deferred: s.DeferredMillis}
	for _, u := range s.Uses {
		t.Uses = append(t.Uses, wire.SlotTook{Use: wire.SlotUse(u.Use), Attempts: u.Attempts, Millis: u.Millis})
	}
	return t
}
