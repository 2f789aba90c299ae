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

// How job trackers create a cluster. With -bootstrap-expect N, each publishes its ballot by gossip:
// a digest of the ids and addresses of the N job trackers that it sees. When all N have the same
// ballot, each bootstraps its log with these voters. Two different sets of voters with a common
// member cannot both bootstrap. The common member would need two ballots, and it changes its ballot
// only after a member of the ballot has left.

// step is the next action of a job tracker without state.
type step int

const (
	waitForOthers  step = iota
	publishBallot       // tell the others by gossip
	bootstrap           // bootstrap the log with the voters
	join                // ask an existing cluster to add this job tracker
	waitForCluster      // wait until other job trackers create one
)

// decision is a step and its arguments.
type decision struct {
	step   step
	voters []replica.Voter
	ballot string
}

// decide chooses the next step of self. self is among the members, and its log has no state.
func decide(self gossip.Member, members []gossip.Member) (decision, error) {
	var candidates []gossip.Member
	clusterExists, ballotWon := false, false
	for _, m := range members {
		switch {
		case m.Role != gossip.JobTracker:
		case m.ID != self.ID && (m.Cluster != "" || m.Voter):
			clusterExists = true
			if self.Ballot != "" && m.Ballot == self.Ballot {
				ballotWon = true // a job tracker with this ballot has bootstrapped already
				candidates = append(candidates, m)
			}
		case m.Expect > 0 && m.Raft != "":
			candidates = append(candidates, m)
		}
	}
	switch {
	case ballotWon:
		if d := sameBallot(self, candidates); d.step == bootstrap {
			return d, nil
		}
		return decision{step: join}, nil
	case clusterExists:
		return decision{step: join}, nil
	case self.Expect == 0:
		return decision{step: waitForCluster}, nil
	}
	return agree(self, candidates)
}

// agree compares the ballots of the job trackers that want to create a cluster.
func agree(self gossip.Member, candidates []gossip.Member) (decision, error) {
	voters := votersOf(candidates)
	ballot := ballotOf(voters)
	agreed := true
	for _, m := range candidates {
		if m.Expect != self.Expect {
			return decision{}, fmt.Errorf("%s has -bootstrap-expect %d, this job tracker %d: start all with the same number", m.ID, m.Expect, self.Expect)
		}
		agreed = agreed && m.Ballot == ballot
	}
	switch {
	case len(candidates) < self.Expect:
		return decision{step: waitForOthers}, nil
	case len(candidates) > self.Expect && self.Ballot == "":
		return decision{}, fmt.Errorf("%d job trackers try to create a cluster of %d: %s; start as many as -bootstrap-expect, and the others later without that flag",
			len(candidates), self.Expect, memberNames(candidates))
	case len(candidates) > self.Expect: // a job tracker came after this ballot
		return sameBallot(self, candidates), nil
	case agreed:
		return decision{bootstrap, voters, ballot}, nil
	case self.Ballot != ballot:
		return decision{publishBallot, voters, ballot}, nil
	}
	return decision{step: waitForOthers}, nil
}

// sameBallot bootstraps once all members of this job tracker's ballot have the same ballot.
func sameBallot(self gossip.Member, candidates []gossip.Member) decision {
	same := slices.DeleteFunc(slices.Clone(candidates), func(m gossip.Member) bool { return m.Ballot != self.Ballot })
	voters := votersOf(same)
	if ballotOf(voters) == self.Ballot {
		return decision{bootstrap, voters, self.Ballot}
	}
	return decision{step: waitForOthers}
}

func votersOf(members []gossip.Member) []replica.Voter {
	var voters []replica.Voter
	for _, m := range members {
		voters = append(voters, replica.Voter{ID: m.ID, Addr: m.Raft})
	}
	slices.SortFunc(voters, func(a, b replica.Voter) int { return strings.Compare(a.ID, b.ID) })
	return voters
}

// ballotOf returns the digest of voters, which are sorted by id.
func ballotOf(voters []replica.Voter) string {
	h := sha256.New()
	for _, v := range voters {
		fmt.Fprintf(h, "%q %q\n", v.ID, v.Addr)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func memberNames(members []gossip.Member) string {
	var all []string
	for _, m := range members {
		all = append(all, fmt.Sprintf("%s (%s)", m.ID, m.Raft))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
