package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/gossip"
	"github.com/quernmr/quern/jobtracker/replica"
)

func candidate(n, expect int) gossip.Member {
	return gossip.Member{
		ID: fmt.Sprintf("jt%d", n), Role: gossip.JobTracker, Raft: fmt.Sprintf("host%d:1", n), Expect: expect,
	}
}

func TestDecide(t *testing.T) {
	with := func(m gossip.Member, change func(*gossip.Member)) gossip.Member {
		change(&m)
		return m
	}
	all := []gossip.Member{candidate(1, 3), candidate(2, 3), candidate(3, 3)}
	ballot := ballotOf(votersOf(all))
	voted := slices.Clone(all)
	for i := range voted {
		voted[i].Ballot = ballot
	}
	led := with(candidate(9, 0), func(m *gossip.Member) { m.Voter, m.Cluster = true, "c" })
	tracker := gossip.Member{ID: "tt1", Role: gossip.TaskTracker}
	for _, c := range []struct {
		name    string
		members []gossip.Member // decide is called for the first one
		want    step
		err     string
	}{
		{"alone", all[:1], waitForOthers, ""},
		{"one is missing", append(slices.Clone(all[:2]), tracker), waitForOthers, ""},
		{"one has no log yet", []gossip.Member{all[0], all[1], with(all[2], func(m *gossip.Member) { m.Raft = "" })}, waitForOthers, ""},
		{"all are there", all, publishBallot, ""},
		{"one has no ballot", []gossip.Member{voted[0], voted[1], all[2]}, waitForOthers, ""},
		{"all have the ballot", voted, bootstrap, ""},
		{"one restarted at another address", []gossip.Member{voted[0], voted[1], with(voted[2], func(m *gossip.Member) { m.Raft, m.Ballot = "host7:1", "" })}, publishBallot, ""},
		{"one has bootstrapped", []gossip.Member{voted[0], voted[1], with(voted[2], func(m *gossip.Member) { m.Voter = true })}, bootstrap, ""},
		{"one has bootstrapped, another has no ballot", []gossip.Member{voted[0], all[1], with(voted[2], func(m *gossip.Member) { m.Voter = true })}, join, ""},
		{"a cluster exists", append(slices.Clone(all), led), join, ""},
		{"a cluster with another ballot exists", append(slices.Clone(voted), led), join, ""},
		{"a newcomer finds no job tracker", []gossip.Member{candidate(4, 0)}, waitForCluster, ""},
		{"a newcomer finds a cluster", []gossip.Member{candidate(4, 0), led}, join, ""},
		{"one expects another number", []gossip.Member{all[0], candidate(2, 5)}, 0, "jt2 has -bootstrap-expect 5, this job tracker 3"},
		{"one too many", append(slices.Clone(all), candidate(4, 3)), 0, "4 job trackers try to create a cluster of 3: jt1 (host1:1), jt2"},
		{"one too many, too late", append(slices.Clone(voted), candidate(4, 3)), bootstrap, ""},
		{"one too many, while another has no ballot", append([]gossip.Member{voted[0], voted[1], all[2]}, candidate(4, 3)), waitForOthers, ""},
	} {
		d, err := decide(c.members[0], c.members)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", c.name, err)
			}
		case err != nil || d.step != c.want:
			t.Errorf("%s: step %d, not %d; %v", c.name, d.step, c.want, err)
		}
	}
}

// TestVotersAgree: any two job trackers that bootstrap have the same voters or no common voter, in
// whatever order they observe each other.
func TestVotersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "job trackers")
		expect := rapid.IntRange(1, 4).Draw(t, "expected")
		published := make([]gossip.Member, n)    // by index: the job tracker's own state
		seen := make([]map[int]gossip.Member, n) // by index: its latest observations of the others
		voters := make(map[int][]replica.Voter)
		refused := make(map[int]bool)
		for i := range n {
			published[i], seen[i] = candidate(i, expect), make(map[int]gossip.Member)
		}
		t.Repeat(map[string]func(*rapid.T){
			"observe": func(t *rapid.T) {
				i, j := rapid.IntRange(0, n-1).Draw(t, "observer"), rapid.IntRange(0, n-1).Draw(t, "observed")
				if i != j {
					seen[i][j] = published[j]
				}
			},
			"decide": func(t *rapid.T) {
				i := rapid.IntRange(0, n-1).Draw(t, "observer")
				if voters[i] != nil || refused[i] {
					return
				}
				members := []gossip.Member{published[i]}
				for _, m := range seen[i] {
					members = append(members, m)
				}
				d, err := decide(published[i], members)
				switch {
				case err != nil:
					refused[i] = true
				case d.step == publishBallot:
					published[i].Ballot = d.ballot
				case d.step == bootstrap:
					voters[i] = d.voters
					published[i].Voter, published[i].Ballot = true, ballotOf(d.voters)
				}
			},
			"": func(t *rapid.T) {
				for i, a := range voters {
					if len(a) != expect || !slices.ContainsFunc(a, func(v replica.Voter) bool { return v.ID == published[i].ID }) {
						t.Fatalf("%s bootstraps with %v", published[i].ID, a)
					}
					for j, b := range voters {
						common := slices.ContainsFunc(a, func(v replica.Voter) bool { return slices.Contains(b, v) })
						if common && !slices.Equal(a, b) {
							t.Fatalf("%s bootstraps with %v, %s with %v", published[i].ID, a, published[j].ID, b)
						}
					}
				}
			},
		})
	})
}
