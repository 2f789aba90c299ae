package core

import (
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
)

// runDetail runs a verb about what only the status of a single job has:
//
//	sizes job1         the sizes of its partitions
//	slots job1         what its slots did
//	hot job1           its hot keys
//
// It returns false for other verbs.
func (s *scenario) runDetail(d *datadriven.TestData) bool {
	if d.Cmd != "sizes" && d.Cmd != "slots" && d.Cmd != "hot" {
		return false
	}
	status, _ := s.core.StatusAt(s.now, parseJob(d.CmdArgs[0].Key))
	switch d.Cmd {
	case "hot":
		for _, k := range status.HotKeys {
			s.printf("p%d %s: %d of %d", k.Partition, k.Key, k.Bytes, k.Of)
		}
	case "slots":
		for _, u := range status.SlotTime.Uses {
			s.printf("%s %d %v", u.Use, u.Attempts, time.Duration(u.Millis)*time.Millisecond)
		}
		s.printf("= %v; left %v", time.Duration(status.SlotTime.Total)*time.Millisecond, time.Duration(status.SlotTime.Deferred)*time.Millisecond)
	case "sizes":
		p := status.Partitions
		if p == nil {
			s.printf("not known")
			return true
		}
		s.printf("%d of %d known, %d gathered, %d bytes", p.Known, p.Total, p.Gathered, p.Bytes)
		var largest, buckets []string
		for _, x := range p.Largest {
			largest = append(largest, fmt.Sprintf("p%d=%d", x.Partition, x.Bytes))
		}
		for _, b := range p.Buckets {
			buckets = append(buckets, fmt.Sprintf("%d-%d: %d", b.From, b.To-1, b.Partitions))
		}
		s.printf("largest %s; median %d of %s", strings.Join(largest, " "), p.Median, strings.Join(buckets, ", "))
	}
	return true
}
