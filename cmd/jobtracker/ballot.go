package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/jobtracker/replica"
)

// How a cluster begins. Every job tracker that was told to expect N tells by gossip
// which N it sees: its ballot, a digest of their ids and addresses. When all of
// these N have the same ballot, each bootstraps its log with the same voters. So
// two sets of voters with a common member never both begin: it would have to have
// had two ballots, and one is changed only when a member of it has gone.

// step is what a job tracker without state does next.
type step int

const (
	wait    step = iota // for others
	vote                // tell the ballot
	begin               // bootstrap the log with the voters
	askFor              // ask the cluster that is there to be added
	unasked             // nothing can be done before somebody begins a cluster
)

// decision is a step and what it takes.
type decision struct {
	step   step
	voters []replica.Voter
	ballot string
}

// decide looks at who is there. Self is among the members and has no state.
func decide(self gossip.Member, members []gossip.Member) (decision, error) {
	var candidates []gossip.Member
	established, quicker := false, false
	for _, m := range members {
		switch {
		case m.Role != gossip.JobTracker:
		case m.ID != self.ID && (m.Cluster != "" || m.Voter):
			established = true
			if self.Ballot != "" && m.Ballot == self.Ballot {
				quicker = true
				candidates = append(candidates, m)
			}
		case m.Expect > 0 && m.Raft != "":
			candidates = append(candidates, m)
		}
	}
	switch {
	case quicker:
		if d := sameBallot(self, candidates); d.step == begin {
			return d, nil
		}
		return decision{step: askFor}, nil
	case established:
		return decision{step: askFor}, nil
	case self.Expect == 0:
		return decision{step: unasked}, nil
	}
	return agree(self, candidates)
}

// agree compares what those say that want to begin a cluster.
func agree(self gossip.Member, candidates []gossip.Member) (decision, error) {
	voters := votersOf(candidates)
	ballot := ballotOf(voters)
	agreed := true
	for _, m := range candidates {
		if m.Expect != self.Expect {
			return decision{}, fmt.Errorf("%s was told -bootstrap-expect %d, this job tracker %d: start them with the same", m.ID, m.Expect, self.Expect)
		}
		agreed = agreed && m.Ballot == ballot
	}
	switch {
	case len(candidates) < self.Expect:
		return decision{step: wait}, nil
	case len(candidates) > self.Expect && self.Ballot == "":
		return decision{}, fmt.Errorf("%d job trackers want to begin a cluster of %d: %s; start as many as -bootstrap-expect says, and the others later without it",
			len(candidates), self.Expect, names(candidates))
	case len(candidates) > self.Expect: // somebody came too late
		return sameBallot(self, candidates), nil
	case agreed:
		return decision{begin, voters, ballot}, nil
	case self.Ballot != ballot:
		return decision{vote, voters, ballot}, nil
	}
	return decision{step: wait}, nil
}

// sameBallot begins once all of those of this one's ballot are seen to have it.
func sameBallot(self gossip.Member, candidates []gossip.Member) decision {
	same := slices.DeleteFunc(slices.Clone(candidates), func(m gossip.Member) bool { return m.Ballot != self.Ballot })
	voters := votersOf(same)
	if ballotOf(voters) == self.Ballot {
		return decision{begin, voters, self.Ballot}
	}
	return decision{step: wait}
}

func votersOf(members []gossip.Member) []replica.Voter {
	var voters []replica.Voter
	for _, m := range members {
		voters = append(voters, replica.Voter{ID: m.ID, Addr: m.Raft})
	}
	slices.SortFunc(voters, func(a, b replica.Voter) int { return strings.Compare(a.ID, b.ID) })
	return voters
}

// ballotOf is the digest of voters in order of their ids.
func ballotOf(voters []replica.Voter) string {
	h := sha256.New()
	for _, v := range voters {
		fmt.Fprintf(h, "%q %q\n", v.ID, v.Addr)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func names(members []gossip.Member) string {
	var all []string
	for _, m := range members {
		all = append(all, fmt.Sprintf("%s (%s)", m.ID, m.Raft))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
