package wire

import "fmt"

// Skip is what an attempt skips of its input.
type Skip struct {
	Changes int           `msgpack:"Changes"` // how often the log has changed what the task skips
	Ranges  []RecordRange `msgpack:"Ranges"`  // in no order; they may overlap
}

// RecordRange is a range of the records of a map's split, or of the groups of a partition, counted
// from 0.
type RecordRange struct {
	From int64 `msgpack:"From"`
	To   int64 `msgpack:"To"` // exclusive
}

// Text names the range: "record 7", "records 7-9".
func (r RecordRange) Text(what string) string {
	if r.To == r.From+1 {
		return fmt.Sprintf("%s %d", what, r.From)
	}
	return fmt.Sprintf("%ss %d-%d", what, r.From, r.To-1)
}

// Position is a record or group, and what the attempt that counted it read.
type Position struct {
	Record  int64  `msgpack:"Record"`
	Changes int    `msgpack:"Changes"`         // as in Skip
	Digest  uint64 `msgpack:"Digest"`          // as in Report, of a reduce's input; 0 for a map
	Where   string `msgpack:"Where,omitempty"` // file and offset of the record, for messages; empty: not known
}
