package facts

import (
	"fmt"

	"github.com/quernmr/quern/wire"
)

// Bootstrapped is a cluster's first fact.
type Bootstrapped struct {
	Start   int64  `msgpack:"s"` // Unix milliseconds, part of every job's id
	Cluster string `msgpack:"c"`
	Staging string `msgpack:"d"` // URL of the cluster's staging directory
	Nonce   string `msgpack:"n"` // proves that a tracker sees the same directory
}

func (*Bootstrapped) number() byte         { return 1 }
func (x *Bootstrapped) Name() string       { return "bootstrapped" }
func (x *Bootstrapped) Fits(f *Facts) bool { return f.boot.Start == 0 && x.Start > 0 }
func (x *Bootstrapped) apply(f *Facts, _ uint64) {
	f.boot = *x
}

// LeaderElected is a leader's first entry. Its term is the leader's epoch.
type LeaderElected struct {
	Leader string `msgpack:"l"`
	Addr   string `msgpack:"a"` // host:port of its API
}

func (*LeaderElected) number() byte         { return 2 }
func (x *LeaderElected) Name() string       { return "leader-elected " + x.Leader }
func (x *LeaderElected) Fits(f *Facts) bool { return true }
func (x *LeaderElected) apply(f *Facts, term uint64) {
	f.epoch = max(f.epoch, term)
	f.leader = *x
}

// TrackerRegistered begins an incarnation of a tracker, unless the same process is registered
// already.
type TrackerRegistered struct {
	Tracker Tracker `msgpack:"t"` // apply sets its Incarnation
}

func (*TrackerRegistered) number() byte { return 3 }
func (x *TrackerRegistered) Name() string {
	return fmt.Sprintf("registered %s process %d", x.Tracker.Name, x.Tracker.Process)
}
func (x *TrackerRegistered) Fits(f *Facts) bool {
	t := f.trackers[x.Tracker.Name]
	return x.Tracker.Name != "" && (t == nil || t.Process != x.Tracker.Process)
}
func (x *TrackerRegistered) apply(f *Facts, _ uint64) {
	t := x.Tracker
	f.incarnations++
	t.Incarnation = f.incarnations
	f.trackers[t.Name] = &t
}

// TrackerLost ends an incarnation.
type TrackerLost struct {
	Tracker     string `msgpack:"t"`
	Incarnation uint64 `msgpack:"i"`
}

func (*TrackerLost) number() byte   { return 4 }
func (x *TrackerLost) Name() string { return fmt.Sprintf("lost %s/%d", x.Tracker, x.Incarnation) }
func (x *TrackerLost) Fits(f *Facts) bool {
	t := f.trackers[x.Tracker]
	return t != nil && t.Incarnation == x.Incarnation
}
func (x *TrackerLost) apply(f *Facts, _ uint64) { delete(f.trackers, x.Tracker) }

// TrackerExcluded begins an exclusion of a tracker. It ends at the latest with the incarnation.
type TrackerExcluded struct {
	Tracker     string `msgpack:"t"`
	Incarnation uint64 `msgpack:"i"`
	Until       int64  `msgpack:"u"` // Unix milliseconds
	Reason      string `msgpack:"r"`
}

func (*TrackerExcluded) number() byte { return 15 }
func (x *TrackerExcluded) Name() string {
	return fmt.Sprintf("excluded %s/%d", x.Tracker, x.Incarnation)
}
func (x *TrackerExcluded) Fits(f *Facts) bool {
	t := f.trackers[x.Tracker]
	return t != nil && t.Incarnation == x.Incarnation && t.Excluded == "" && x.Reason != ""
}
func (x *TrackerExcluded) apply(f *Facts, _ uint64) {
	t := *f.trackers[x.Tracker]
	t.Excluded, t.Until = x.Reason, x.Until
	f.trackers[x.Tracker] = &t
}

// TrackerReadmitted ends an exclusion.
type TrackerReadmitted struct {
	Tracker     string `msgpack:"t"`
	Incarnation uint64 `msgpack:"i"`
}

func (*TrackerReadmitted) number() byte { return 16 }
func (x *TrackerReadmitted) Name() string {
	return fmt.Sprintf("readmitted %s/%d", x.Tracker, x.Incarnation)
}
func (x *TrackerReadmitted) Fits(f *Facts) bool {
	t := f.trackers[x.Tracker]
	return t != nil && t.Incarnation == x.Incarnation && t.Excluded != ""
}
func (x *TrackerReadmitted) apply(f *Facts, _ uint64) {
	t := *f.trackers[x.Tracker]
	t.Excluded, t.Until = "", 0
	f.trackers[x.Tracker] = &t
}

// Submitted numbers the jobs of a submission.
type Submitted struct {
	At         int64           `msgpack:"a"` // Unix milliseconds
	Submission wire.Submission `msgpack:"s"`
	Secret     []byte          `msgpack:"k,omitempty"` // tokens are derived from it; nil in logs of older builds

	// The ACLs of its jobs. Older builds accepted properties with these names, but did not use them: Facts
	// of their entries stay equal.
	View   string `msgpack:"v,omitempty"`
	Modify string `msgpack:"m,omitempty"`
}

// submittedSecret is the number of a submission with a secret. A build without secrets would
// lose the secret: it does not know the number, and stops.
const submittedSecret = 22

// submittedDigest is the number of a submission with a digest, without which task trackers
// launch nothing.
const submittedDigest = 29

// submittedACLs is the number of a submission with ACLs, which a build without them would lose.
const submittedACLs = 30

func (x *Submitted) number() byte {
	if x.View != "" || x.Modify != "" {
		return submittedACLs
	}
	if len(x.Submission.Digest) > 0 {
		return submittedDigest
	}
	if len(x.Secret) > 0 {
		return submittedSecret
	}
	return 5
}
func (x *Submitted) Name() string { return "submitted " + x.Submission.Key }
func (x *Submitted) Fits(f *Facts) bool {
	return f.boot.Start != 0 && f.submissions[x.Submission.Key] == nil && CheckSubmission(&x.Submission) == nil
}
func (x *Submitted) apply(f *Facts, _ uint64) {
	s := &Submission{
		key: x.Submission.Key, first: f.lastJob + 1, jobs: len(x.Submission.Plan.Jobs),
		at: x.At, staging: x.Submission.Staging, secret: x.Secret, view: x.View, modify: x.Modify,
		submissionState: &submissionState{since: f.freezes, body: &x.Submission, settings: x.Submission.Settings},
	}
	if len(x.Secret) > 0 { // older builds do not keep the owner: without a secret, Facts must be equal
		s.owner = x.Submission.Owner
	}
	f.submissions[s.key] = s
	for i, plan := range x.Submission.Plan.Jobs {
		f.lastJob++
		f.jobs[f.lastJob] = &Job{
			n: f.lastJob, sub: s, index: i, name: plan.Name, reduces: plan.Reduces, jobState: &jobState{since: f.freezes, maps: -1},
		}
		f.numbers = append(f.numbers, f.lastJob)
	}
}

// Swept says that an ended submission's staging directory is gone.
type Swept struct {
	Key string `msgpack:"k"`
}

func (*Swept) number() byte   { return 14 }
func (x *Swept) Name() string { return "swept " + x.Key }
func (x *Swept) Fits(f *Facts) bool {
	s := f.submissions[x.Key]
	return s != nil && s.body == nil && !s.swept
}
func (x *Swept) apply(f *Facts, _ uint64) {
	f.changeSubmission(x.Key).swept = true
	f.dropEndedJobs()
}
