package facts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// snapshotVersion is the first byte of every snapshot. It rises when a snapshot of the same
// Facts gets other bytes; the version in jobtracker/replica/agree.go rises with it, since
// job trackers compare checksums of snapshots.
const snapshotVersion = 2

// factsSnapshot is the msgpack behind the version byte. Lists are sorted, so equal Facts
// give equal bytes.
type factsSnapshot struct {
	Index        uint64               `msgpack:"Index"`
	Epoch        uint64               `msgpack:"Epoch"`
	Leader       LeaderElected        `msgpack:"Leader"`
	Boot         Bootstrapped         `msgpack:"Boot"`
	Incarnations uint64               `msgpack:"Incarnations"`
	LastJob      int                  `msgpack:"LastJob"`
	Trackers     []Tracker            `msgpack:"Trackers"`
	Submissions  []submissionSnapshot `msgpack:"Submissions"`
	Jobs         []jobSnapshot        `msgpack:"Jobs"`
	Ended        []int                `msgpack:"Ended"`
	Scheduled    SchedulingChanged    `msgpack:"Scheduled"`
	Pooled       PoolsChanged         `msgpack:"Pooled"`
	Drains       int                  `msgpack:"Drains"`
	Draining     []drainSnapshot      `msgpack:"Draining"`

	// Only after operators have excluded trackers, so that the bytes of others stay the same.
	OperatorChanges    int                 `msgpack:"OperatorChanges,omitempty"`
	OperatorExclusions []OperatorExclusion `msgpack:"OperatorExclusions,omitempty"`
}

type drainSnapshot struct {
	Tracker string `msgpack:"Tracker"`
	N       int    `msgpack:"N"`
	Process uint64 `msgpack:"Process"`
	Rested  int    `msgpack:"Rested,omitempty"`
}

type submissionSnapshot struct {
	Key     string           `msgpack:"Key"`
	First   int              `msgpack:"First"`
	Jobs    int              `msgpack:"Jobs"`
	At      int64            `msgpack:"At"`
	Staging string           `msgpack:"Staging"`
	Body    *wire.Submission `msgpack:"Body"`
	Swept   bool             `msgpack:"Swept"`

	Changes   int           `msgpack:"Changes"`
	Terms     wire.Settings `msgpack:"Terms"`
	Suspended bool          `msgpack:"Suspended"`

	// Only of submissions with a secret, so that the bytes of others stay the same.
	Owner  string `msgpack:"Owner,omitempty"`
	Secret []byte `msgpack:"Secret,omitempty"`

	// Only of submissions with ACLs.
	View   string `msgpack:"View,omitempty"`
	Modify string `msgpack:"Modify,omitempty"`
}

type jobSnapshot struct {
	N           int      `msgpack:"N"`
	Key         string   `msgpack:"Key"` // of its submission
	Index       int      `msgpack:"Index"`
	Name        string   `msgpack:"Name"`
	Reduces     int      `msgpack:"Reduces"`
	Maps        int      `msgpack:"Maps"`
	SplitsHash  uint64   `msgpack:"SplitsHash"`
	Digests     bool     `msgpack:"Digests"`
	DigestsHash uint64   `msgpack:"DigestsHash"`
	Done        []uint64 `msgpack:"Done"`
	Grants      [][2]int `msgpack:"Grants"`
	Stop        *Stopped `msgpack:"Stop"`
	Committing  bool     `msgpack:"Committing"`
	End         *Ended   `msgpack:"End"`

	// Only of jobs with such tasks, so that the bytes of others stay the same.
	GivenUpMaps    []uint64       `msgpack:"GivenUpMaps,omitempty"`
	GivenUpReduces []uint64       `msgpack:"GivenUpReduces,omitempty"`
	GivenUpCauses  []GivenUpCause `msgpack:"GivenUpCauses,omitempty"`
	Skips          []skipSnapshot `msgpack:"Skips,omitempty"`
}

// Snapshot encodes Facts. Equal Facts give equal bytes.
func (f *Facts) Snapshot() ([]byte, error) { return f.Freeze().Snapshot() }

// Snapshot encodes the Facts at the time of the Freeze.
func (v *View) Snapshot() ([]byte, error) {
	s := v.head
	for _, t := range v.trackers {
		s.Trackers = append(s.Trackers, *t)
	}
	slices.SortFunc(s.Trackers, func(a, b Tracker) int { return cmp.Compare(a.Name, b.Name) })
	s.Submissions = make([]submissionSnapshot, 0, len(v.submissions))
	for i := range v.submissions {
		x := &v.submissions[i]
		s.Submissions = append(s.Submissions, submissionSnapshot{
			Key: x.key, First: x.first, Jobs: x.jobs, At: x.at, Staging: x.staging, Body: x.body, Swept: x.swept,
			Changes: x.changes, Terms: x.settings, Suspended: x.suspended, Owner: x.owner, Secret: x.secret,
			View: x.view, Modify: x.modify,
		})
	}
	slices.SortFunc(s.Submissions, func(a, b submissionSnapshot) int { return cmp.Compare(a.Key, b.Key) })
	s.Jobs = make([]jobSnapshot, 0, len(v.jobs))
	for i := range v.jobs {
		s.Jobs = append(s.Jobs, v.jobs[i].snapshot())
	}
	body, err := wire.Marshal(&s)
	if err != nil {
		return nil, fmt.Errorf("snapshot of facts: %w", err)
	}
	return append([]byte{snapshotVersion}, body...), nil
}

func (j *frozenJob) snapshot() jobSnapshot {
	s := jobSnapshot{
		N: j.n, Key: j.sub.key, Index: j.index, Name: j.name, Reduces: j.reduces, Maps: j.maps,
		SplitsHash: j.splitsHash, Digests: j.digests, DigestsHash: j.digestsHash,
		Done: j.done.Words(), Stop: j.stop, Committing: j.committing, End: j.end,
		GivenUpMaps: j.givenUp[0].Words(), GivenUpReduces: j.givenUp[1].Words(), GivenUpCauses: j.causes,
		Skips: j.skipSnapshots(),
	}
	for _, task := range slices.Sorted(maps.Keys(j.grants)) {
		s.Grants = append(s.Grants, [2]int{task, j.grants[task]})
	}
	return s
}

// decodeSnapshot reads all versions. It ignores unknown fields of version 1: later builds
// dropped them.
func decodeSnapshot(data []byte) (s factsSnapshot, err error) {
	switch {
	case len(data) == 0:
		return s, fmt.Errorf("%w: no bytes", ErrUnknownFact)
	case data[0] == 1:
		return s, wire.Unmarshal(data[1:], &s)
	case data[0] != snapshotVersion:
		return s, fmt.Errorf("%w: version %d, this build knows %d", ErrUnknownFact, data[0], snapshotVersion)
	}
	if err := wire.UnmarshalKnown(data[1:], &s); err != nil {
		return s, fmt.Errorf("%w: %w", ErrUnknownFact, err)
	}
	return s, nil
}

// Restore decodes a snapshot of this build or an older one. It refuses others with
// [ErrUnknownFact].
func Restore(data []byte) (*Facts, error) {
	s, err := decodeSnapshot(data)
	if err != nil {
		return nil, fmt.Errorf("snapshot of facts: %w", err)
	}
	f := New()
	f.index, f.epoch, f.leader, f.boot, f.incarnations = s.Index, s.Epoch, s.Leader, s.Boot, s.Incarnations
	f.lastJob, f.ended, f.scheduling, f.pools = s.LastJob, s.Ended, s.Scheduled, s.Pooled
	for _, t := range s.Trackers {
		f.trackers[t.Name] = &t
	}
	f.drains = s.Drains
	for _, d := range s.Draining {
		f.draining[d.Tracker] = &Draining{N: d.N, Process: d.Process, IdleSteps: d.Rested}
	}
	f.operatorChanges = s.OperatorChanges
	for _, x := range s.OperatorExclusions {
		f.operatorExclusions[x.Tracker] = &x
	}
	for _, x := range s.Submissions {
		f.submissions[x.Key] = &Submission{
			key: x.Key, first: x.First, jobs: x.Jobs, at: x.At, staging: x.Staging, owner: x.Owner, secret: x.Secret,
			view: x.View, modify: x.Modify,
			submissionState: &submissionState{body: x.Body, swept: x.Swept, changes: x.Changes, settings: x.Terms, suspended: x.Suspended},
		}
	}
	for _, x := range s.Jobs {
		j := &Job{n: x.N, sub: f.submissions[x.Key], index: x.Index, name: x.Name, reduces: x.Reduces}
		j.jobState = &jobState{
			maps: x.Maps, splitsHash: x.SplitsHash, digests: x.Digests, digestsHash: x.DigestsHash,
			done: taskset.Of(x.Done), stop: x.Stop, committing: x.Committing, end: x.End,
			givenUp: [2]taskset.Set{taskset.Of(x.GivenUpMaps), taskset.Of(x.GivenUpReduces)}, causes: x.GivenUpCauses,
			skips: restoreSkips(x.Skips),
		}
		if j.sub == nil {
			return nil, fmt.Errorf("snapshot of facts: job %d belongs to no submission", j.n)
		}
		for _, g := range x.Grants {
			if j.grants == nil {
				j.grants = make(map[int]int)
			}
			j.grants[g[0]] = g[1]
		}
		f.jobs[j.n] = j
		f.numbers = append(f.numbers, j.n)
	}
	slices.Sort(f.numbers)
	return f, nil
}
