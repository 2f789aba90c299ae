package admission

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// Submit decides on a submission; wall is the time in Unix milliseconds. It returns the
// submission to propose, or, if the key was accepted before, the known submission with it.
func Submit(f *facts.Facts, s *wire.Submission, by Caller, wall int64) (accepted wire.Submission, known *facts.Submission, err error) {
	if s != nil && f.Submission(s.Key) != nil {
		known = f.Submission(s.Key)
		if !by.owns(known.Owner()) {
			err = by.refusal("submit again", f.ID(known.First()), known.Owner(), "")
		}
		return wire.Submission{}, known, err
	}
	if err := checkNew(s, f.Boot().Staging, by); err != nil {
		return wire.Submission{}, nil, err
	}
	accepted = *s
	if by.Known() {
		accepted.Owner = by.Name // the submission's own Owner is not trusted
	}
	if accepted.DeadlineAt != 0 {
		accepted.Settings.Deadline = nonzeroDeadline(time.UnixMilli(accepted.DeadlineAt).Sub(time.UnixMilli(wall)))
		accepted.DeadlineAt = 0
	}
	if err = checkSettings(accepted.Settings); err == nil {
		err = checkPool(f, accepted.Settings.Pool, accepted.Owner, by)
	}
	if err == nil {
		err = errors.Join(checkOwner(&accepted), checkGroups(&accepted, by))
	}
	return accepted, nil, err
}

// checkOwner returns why a job cannot have its owner. Certificates have only good names, but without them
// a client sends any.
func checkOwner(s *wire.Submission) error {
	if s.Owner == "" || s.Program.Hash == "" { // embedded runs have the account's name
		return nil
	}
	if err := wire.CheckACLName(s.Owner); err != nil {
		return fmt.Errorf("%w: owner %w", ErrBadSubmission, err)
	}
	return nil
}

// checkNew returns why a submission cannot be proposed.
func checkNew(s *wire.Submission, staging string, by Caller) error {
	err := facts.CheckSubmission(s)
	if err == nil {
		err = s.CheckLimits()
	}
	if err == nil && s.Program.Hash != "" && len(s.Digest) != sha256.Size { // embedded runs have no hash
		err = errors.New("it has no SHA-256 of its staged file: use mrsubmit of this version")
	}
	if err == nil {
		err = checkACLs(s)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBadSubmission, err)
	}
	return checkStaging(s, staging, cmp.Or(by.Name, s.Owner))
}

// checkStaging returns why a submission cannot have the staging directory that it names. The job
// tracker removes this directory later, with its own rights or the owner's. Since its name is the key, no
// two submissions have the same one.
func checkStaging(s *wire.Submission, staging, owner string) error {
	reserved := []string{wire.StagingClusters, wire.StagingPrograms, wire.StagingHistory, wire.StagingSessions, wire.StagingUsers}
	isName := func(name string) bool { return strings.Trim(name, ".") != "" && !strings.Contains(name, "/") }
	root := strings.TrimRight(staging, "/")
	places := []string{root + "/" + s.Key}
	if isName(owner) {
		places = append(places, wire.UserStaging(root, owner)+"/"+s.Key)
	}
	if staging != "" && (!isName(s.Key) || slices.Contains(reserved, s.Key) || !slices.Contains(places, s.Staging)) {
		return fmt.Errorf("%w: staging directory %q must be directly below %s, or below its owner's directory in %s there, with the submission's key %q as its name, which is not reserved", ErrBadSubmission, s.Staging, staging, wire.StagingUsers, s.Key)
	}
	return nil
}

// checkPool returns why the owner's jobs may not be in a pool. An administrator may put any job
// into any pool.
func checkPool(f *facts.Facts, name, owner string, by Caller) error {
	_, table := f.Pools()
	p, ok := table.Find(name)
	switch {
	case !ok:
		return fmt.Errorf("%w: pool %q is unknown; there are %v", ErrBadSettings, name, poolNames(table))
	case p.Inner:
		return fmt.Errorf("%w: pool %s takes no jobs: it is for the pools in it; there are %v", ErrBadSettings, name, poolNames(table))
	case !by.Admin && !p.Admits(owner, by.in(owner)) && !p.AdministeredBy(by.Name, by.in(by.Name)):
		return fmt.Errorf("%w: pool %s is not open to %q", ErrNotAllowed, p.Name, owner)
	}
	return nil
}

// poolNames lists the pools that take jobs.
func poolNames(table *pool.Table) []string {
	names := []string{wire.DefaultPool}
	for _, p := range table.Pools {
		if p.Name != wire.DefaultPool && !p.Inner {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Change decides on a change of job settings; wall is the time in Unix milliseconds. It returns
// the submission to change.
func Change(f *facts.Facts, id wire.JobID, c wire.Change, by Caller, wall int64) (*facts.Submission, error) {
	j := f.Find(id)
	if j == nil {
		return nil, fmt.Errorf("%v: %w", id, ErrUnknownJob)
	}
	s := j.Submission()
	if j.Ended() || !s.Open() {
		return nil, fmt.Errorf("%v: %w", id, ErrJobEnded)
	}
	if err := authorize(f, by, "change", id, s); err != nil {
		return nil, err
	}
	if c.TakeBack && (c.Suspended == nil || !*c.Suspended) {
		return nil, fmt.Errorf("%v: %w: only a change that suspends a job can take its slots back", id, ErrBadSettings)
	}
	err := checkSettings(ChangeFact(s, c, wall).Settings)
	if err == nil && c.Pool != nil {
		err = checkPool(f, *c.Pool, s.Owner(), by)
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w", id, err)
	}
	return s, nil
}

// Kill decides on a kill of a job; j is nil if the job is unknown. If settled, err is the answer;
// else the job must stop first.
func Kill(f *facts.Facts, id wire.JobID, j *facts.Job, by Caller) (settled bool, err error) {
	if j != nil && !j.Ended() {
		if err := authorize(f, by, "kill", id, j.Submission()); err != nil {
			return true, err
		}
	}
	return KillResult(id, j)
}

// EndAttempt decides on a request to end an attempt of a job; j is nil if the job is unknown.
func EndAttempt(f *facts.Facts, id wire.JobID, j *facts.Job, by Caller) error {
	switch {
	case j == nil:
		return fmt.Errorf("%v: %w", id, ErrUnknownJob)
	case j.Ended():
		return fmt.Errorf("%v: %w", id, ErrJobEnded)
	}
	return authorize(f, by, "end attempts of", id, j.Submission())
}

// KillResult is Kill without the check of rights.
func KillResult(id wire.JobID, j *facts.Job) (settled bool, err error) {
	switch {
	case j == nil:
		err = ErrUnknownJob
	case j.Ended():
		err = ErrJobEnded
	case j.Stopping():
		return true, nil
	case j.Committing():
		err = ErrJobCommitting
	default:
		return false, nil
	}
	return true, fmt.Errorf("%v: %w", id, err)
}
