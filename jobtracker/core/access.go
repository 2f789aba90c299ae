package core

import (
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Access returns the owner of a job, and who may see it besides; ok is false for an unknown job.
func (c *Core) Access(id wire.JobID) (owner string, a wire.Access, ok bool) {
	j := c.facts.Find(id)
	if j == nil {
		return "", wire.Access{}, false
	}
	return j.Submission().Owner(), c.access(j), true
}

// PastAccess returns who may see a job with this pool and view ACL, which the core may have forgotten.
func (c *Core) PastAccess(pool, view string) wire.Access {
	return admission.PastAccess(c.facts, pool, view, c.cfg.ViewACL)
}

func (c *Core) access(j *facts.Job) wire.Access {
	return admission.AccessOf(c.facts, j.Submission(), c.cfg.ViewACL)
}
