package admission

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// AccessOf returns who may see the jobs of a submission. byDefault is the ACL of submissions that
// have none.
func AccessOf(f *facts.Facts, s *facts.Submission, byDefault string) wire.Access {
	return PastAccess(f, s.Pool(), s.View(), byDefault)
}

// PastAccess is AccessOf for a job that the facts may not have any more, with its pool and view ACL.
func PastAccess(f *facts.Facts, poolName, view, byDefault string) wire.Access {
	_, table := f.Pools()
	p, _ := table.Find(poolName)
	return wire.Access{View: cmp.Or(view, byDefault), Administrators: p.ACL()}
}

// MayView reports whether the caller may see the details of this owner's job: counters, progress,
// errors, attempts and logs.
func (c Caller) MayView(owner string, a wire.Access) bool {
	return c.owns(owner) || a.Administrators.Admits(c.Name, c.in(c.Name)) || c.listed(a.View)
}

// CheckView returns an error if the caller may not see the details of a job.
func (c Caller) CheckView(job wire.JobID, owner string, a wire.Access) error {
	if c.MayView(owner, a) {
		return nil
	}
	return c.refusal("see", job, owner, wire.ViewACL)
}

// authorize returns an error if the caller may not do this to a job: its owner, the users of its
// ACL, the administrators of its pool and those of the cluster may.
func authorize(f *facts.Facts, by Caller, do string, job wire.JobID, s *facts.Submission) error {
	_, table := f.Pools()
	p, _ := table.Find(s.Pool())
	if by.owns(s.Owner()) || p.AdministeredBy(by.Name, by.in(by.Name)) || by.listed(s.Modify()) {
		return nil
	}
	return by.refusal(do, job, s.Owner(), wire.ModifyACL)
}

// listed reports whether an ACL lists the caller. A damaged one lists no user.
func (c Caller) listed(acl string) bool {
	a, err := wire.ParseACL(acl)
	return err == nil && a.Admits(c.Name, c.in(c.Name))
}

// checkACLs returns why the ACLs of a submission are invalid: the jobs of a flow have the same.
func checkACLs(s *wire.Submission) error {
	for _, name := range []string{wire.ViewACL, wire.ModifyACL} {
		text := s.Plan.Jobs[0].Properties[name]
		if _, err := wire.ParseACL(text); err != nil {
			return fmt.Errorf("property %s: %w", name, err)
		}
		if i := slices.IndexFunc(s.Plan.Jobs, func(j wire.JobPlan) bool { return j.Properties[name] != text }); i > 0 {
			return fmt.Errorf("property %s: jobs %q and %q of a flow differ, but its jobs are seen and changed together", name, s.Plan.Jobs[0].Name, s.Plan.Jobs[i].Name)
		}
	}
	return nil
}

// checkGroups returns why the job tracker cannot obey the ACLs of a submission: it knows no groups. If the
// caller is not known, ACLs have no effect.
func checkGroups(s *wire.Submission, by Caller) error {
	if !by.Known() || by.Groups != nil {
		return nil
	}
	for _, name := range []string{wire.ViewACL, wire.ModifyACL} {
		if a, _ := wire.ParseACL(s.Plan.Jobs[0].Properties[name]); len(a.Groups) > 0 {
			return fmt.Errorf("%w: property %s names the group %s, but the job tracker knows no groups: name the users, or ask its operator for -groups", ErrBadSubmission, name, a.Groups[0])
		}
	}
	return nil
}

// SubmittedFact makes the fact of an accepted submission. A flow uses the ACLs of its first job.
func SubmittedFact(s wire.Submission, secret []byte, wall int64) *facts.Submitted {
	properties := s.Plan.Jobs[0].Properties
	return &facts.Submitted{At: wall, Submission: s, Secret: secret, View: properties[wire.ViewACL], Modify: properties[wire.ModifyACL]}
}
