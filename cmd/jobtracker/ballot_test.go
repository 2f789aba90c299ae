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
		members []gossip.Member // the first is the one that decides
		want    step
		err     string
	}{
		{"nobody else is there", all[:1], wait, ""},
		{"one is missing", append(slices.Clone(all[:2]), tracker), wait, ""},
		{"one has no log yet", []gossip.Member{all[0], all[1], with(all[2], func(m *gossip.Member) { m.Raft = "" })}, wait, ""},
		{"all are there", all, vote, ""},
		{"one has not said so", []gossip.Member{voted[0], voted[1], all[2]}, wait, ""},
		{"all have said so", voted, begin, ""},
		{"one has come back elsewhere", []gossip.Member{voted[0], voted[1], with(voted[2], func(m *gossip.Member) { m.Raft, m.Ballot = "host7:1", "" })}, vote, ""},
		{"one was quicker", []gossip.Member{voted[0], voted[1], with(voted[2], func(m *gossip.Member) { m.Voter = true })}, begin, ""},
		{"one was quicker, of another is not heard", []gossip.Member{voted[0], all[1], with(voted[2], func(m *gossip.Member) { m.Voter = true })}, askFor, ""},
		{"there is a cluster", append(slices.Clone(all), led), askFor, ""},
		{"there is a cluster with another ballot", append(slices.Clone(voted), led), askFor, ""},
		{"a newcomer finds nobody", []gossip.Member{candidate(4, 0)}, unasked, ""},
		{"a newcomer finds a cluster", []gossip.Member{candidate(4, 0), led}, askFor, ""},
		{"one expects others", []gossip.Member{all[0], candidate(2, 5)}, 0, "jt2 was told -bootstrap-expect 5, this job tracker 3"},
		{"one too many", append(slices.Clone(all), candidate(4, 3)), 0, "4 job trackers want to begin a cluster of 3: jt1 (host1:1), jt2"},
		{"one too many, too late", append(slices.Clone(voted), candidate(4, 3)), begin, ""},
		{"one too many, while others have not said so", append([]gossip.Member{voted[0], voted[1], all[2]}, candidate(4, 3)), wait, ""},
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

// TestVotersAgree: whatever of each other they see, and when, job trackers that
// begin a cluster begin it with the same voters, or with none in common.
func TestVotersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "job trackers")
		expect := rapid.IntRange(1, 4).Draw(t, "expected")
		told := make([]gossip.Member, n)         // what each tells of itself now
		seen := make([]map[int]gossip.Member, n) // what each has heard of the others
		begun := make(map[int][]replica.Voter)
		refused := make(map[int]bool)
		for i := range n {
			told[i], seen[i] = candidate(i, expect), make(map[int]gossip.Member)
		}
		t.Repeat(map[string]func(*rapid.T){
			"hear": func(t *rapid.T) {
				i, j := rapid.IntRange(0, n-1).Draw(t, "who"), rapid.IntRange(0, n-1).Draw(t, "of whom")
				if i != j {
					seen[i][j] = told[j]
				}
			},
			"act": func(t *rapid.T) {
				i := rapid.IntRange(0, n-1).Draw(t, "who")
				if begun[i] != nil || refused[i] {
					return
				}
				members := []gossip.Member{told[i]}
				for _, m := range seen[i] {
					members = append(members, m)
				}
				d, err := decide(told[i], members)
				switch {
				case err != nil:
					refused[i] = true
				case d.step == vote:
					told[i].Ballot = d.ballot
				case d.step == begin:
					begun[i] = d.voters
					told[i].Voter, told[i].Ballot = true, ballotOf(d.voters)
				}
			},
			"": func(t *rapid.T) {
				for i, a := range begun {
					if len(a) != expect || !slices.ContainsFunc(a, func(v replica.Voter) bool { return v.ID == told[i].ID }) {
						t.Fatalf("%s begins with %v", told[i].ID, a)
					}
					for j, b := range begun {
						common := slices.ContainsFunc(a, func(v replica.Voter) bool { return slices.Contains(b, v) })
						if common && !slices.Equal(a, b) {
							t.Fatalf("%s begins with %v, %s with %v", told[i].ID, a, told[j].ID, b)
						}
					}
				}
			},
		})
	})
}
