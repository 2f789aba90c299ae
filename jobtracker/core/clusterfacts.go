package core

import (
	"fmt"

	"github.com/quernmr/quern/wire"
)

// bootstrapped is a cluster's first fact.
type bootstrapped struct {
	Start   int64  `msgpack:"s"` // Unix milliseconds, part of every job's id
	Cluster string `msgpack:"c"`
	Staging string `msgpack:"d"` // URL of the cluster's staging directory
	Nonce   string `msgpack:"n"` // proves that a tracker sees the same directory
}

func (*bootstrapped) number() byte         { return 1 }
func (x *bootstrapped) key() string        { return "bootstrapped" }
func (x *bootstrapped) fits(f *Facts) bool { return f.boot.Start == 0 && x.Start > 0 }
func (x *bootstrapped) apply(f *Facts, _ uint64) {
	f.boot = *x
}

// tookOffice is a leader's first entry. The term it is written in is its epoch.
type tookOffice struct {
	Leader string `msgpack:"l"`
	Addr   string `msgpack:"a"` // host:port of its API
}

func (*tookOffice) number() byte         { return 2 }
func (x *tookOffice) key() string        { return "took-office " + x.Leader }
func (x *tookOffice) fits(f *Facts) bool { return true }
func (x *tookOffice) apply(f *Facts, term uint64) {
	f.epoch = max(f.epoch, term)
	f.leader = *x
}

// trackerRegistered begins an incarnation of a tracker, unless this very
// process is registered already.
type trackerRegistered struct {
	Tracker trackerFacts `msgpack:"t"` // its Incarnation is given by apply
}

func (*trackerRegistered) number() byte { return 3 }
func (x *trackerRegistered) key() string {
	return fmt.Sprintf("registered %s process %d", x.Tracker.Name, x.Tracker.Process)
}
func (x *trackerRegistered) fits(f *Facts) bool {
	t := f.trackers[x.Tracker.Name]
	return x.Tracker.Name != "" && (t == nil || t.Process != x.Tracker.Process)
}
func (x *trackerRegistered) apply(f *Facts, _ uint64) {
	t := x.Tracker
	f.incarnations++
	t.Incarnation = f.incarnations
	f.trackers[t.Name] = &t
}

// trackerLost ends an incarnation.
type trackerLost struct {
	Tracker     string `msgpack:"t"`
	Incarnation uint64 `msgpack:"i"`
}

func (*trackerLost) number() byte  { return 4 }
func (x *trackerLost) key() string { return fmt.Sprintf("lost %s/%d", x.Tracker, x.Incarnation) }
func (x *trackerLost) fits(f *Facts) bool {
	t := f.trackers[x.Tracker]
	return t != nil && t.Incarnation == x.Incarnation
}
func (x *trackerLost) apply(f *Facts, _ uint64) { delete(f.trackers, x.Tracker) }

// excluded has a tracker given no work for a time. It ends with the incarnation.
type excluded struct {
	Tracker     string `msgpack:"t"`
	Incarnation uint64 `msgpack:"i"`
	Until       int64  `msgpack:"u"` // Unix milliseconds
	Reason      string `msgpack:"r"`
}

func (*excluded) number() byte  { return 15 }
func (x *excluded) key() string { return fmt.Sprintf("excluded %s/%d", x.Tracker, x.Incarnation) }
func (x *excluded) fits(f *Facts) bool {
	t := f.trackers[x.Tracker]
	return t != nil && t.Incarnation == x.Incarnation && t.Excluded == "" && x.Reason != ""
}
func (x *excluded) apply(f *Facts, _ uint64) {
	t := f.trackers[x.Tracker]
	t.Excluded, t.Until = x.Reason, x.Until
}

// readmitted ends an exclusion.
type readmitted struct {
	Tracker     string `msgpack:"t"`
	Incarnation uint64 `msgpack:"i"`
}

func (*readmitted) number() byte { return 16 }
func (x *readmitted) key() string {
	return fmt.Sprintf("readmitted %s/%d", x.Tracker, x.Incarnation)
}
func (x *readmitted) fits(f *Facts) bool {
	t := f.trackers[x.Tracker]
	return t != nil && t.Incarnation == x.Incarnation && t.Excluded != ""
}
func (x *readmitted) apply(f *Facts, _ uint64) {
	t := f.trackers[x.Tracker]
	t.Excluded, t.Until = "", 0
}

// submitted numbers the jobs of a submission.
type submitted struct {
	At         int64           `msgpack:"a"` // Unix milliseconds
	Submission wire.Submission `msgpack:"s"`
	Secret     []byte          `msgpack:"k,omitempty"` // of which its jobs' tokens are made; none: it is older than tokens
}

// submittedSecret is the number of a submission with a secret. A build that does not
// know of secrets would lose it, and must not go on.
const submittedSecret = 22

func (x *submitted) number() byte {
	if len(x.Secret) > 0 {
		return submittedSecret
	}
	return 5
}
func (x *submitted) key() string { return "submitted " + x.Submission.Key }
func (x *submitted) fits(f *Facts) bool {
	return f.boot.Start != 0 && f.submissions[x.Submission.Key] == nil && checkSubmission(&x.Submission) == nil
}
func (x *submitted) apply(f *Facts, _ uint64) {
	s := &submissionFacts{
		key: x.Submission.Key, first: f.lastJob + 1, jobs: len(x.Submission.Plan.Jobs),
		at: x.At, staging: x.Submission.Staging, body: &x.Submission, terms: x.Submission.Terms, secret: x.Secret,
	}
	if len(x.Secret) > 0 { // else older builds, whose facts must be the same, would have to know it
		s.owner = x.Submission.Owner
	}
	f.submissions[s.key] = s
	for i, plan := range x.Submission.Plan.Jobs {
		f.lastJob++
		f.jobs[f.lastJob] = &jobFacts{n: f.lastJob, sub: s, index: i, name: plan.Name, reduces: plan.Reduces, maps: -1}
	}
}

// swept says that an ended submission's staging directory is gone.
type swept struct {
	Key string `msgpack:"k"`
}

func (*swept) number() byte  { return 14 }
func (x *swept) key() string { return "swept " + x.Key }
func (x *swept) fits(f *Facts) bool {
	s := f.submissions[x.Key]
	return s != nil && s.body == nil && !s.swept
}
func (x *swept) apply(f *Facts, _ uint64) {
	f.submissions[x.Key].swept = true
	f.forget()
}
