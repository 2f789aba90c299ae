package core

import (
	"github.com/quernmr/quern/wire"
)

// detail adds to the status of a job what lists of jobs leave out.
func (l *leader) detail(j *job, s *wire.JobStatus) {
	s.Partitions = j.partitions.sizes.Status(len(j.reduces), len(j.reduces)-j.partitions.ungathered)
}
