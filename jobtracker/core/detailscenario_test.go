package core

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"
)

// runDetail runs a verb about what only the status of a single job has:
//
//	sizes job1         the sizes of its partitions
//
// It returns false for other verbs.
func (s *scenario) runDetail(d *datadriven.TestData) bool {
	switch d.Cmd {
	case "sizes":
		status, _ := s.core.Status(parseJob(d.CmdArgs[0].Key))
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
	default:
		return false
	}
	return true
}
