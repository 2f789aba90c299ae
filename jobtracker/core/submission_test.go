package core

import (
	"errors"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// TestPlaces: a submission's directory, which is removed when its jobs have ended, lies
// in the cluster's staging directory and is nobody else's.
func TestPlaces(t *testing.T) {
	const staging = "file:///shared/staging"
	for place, want := range map[string]bool{
		staging + "/k":              true,
		staging + "/;$(x)":          true,
		staging:                     false,
		staging + "/":               false,
		staging + "/..":             false,
		staging + "/../k":           false,
		staging + "/a/b":            false,
		staging + "/history":        false,
		staging + "/clusters":       false,
		staging + "/programs":       false,
		"file:///shared/staging2/k": false,
		"file:///etc":               false,
		"/shared/staging/k":         false,
		"mem://shared/staging/k":    false,
	} {
		c := New(Config{ID: "jt", Staging: staging})
		var entries []Propose
		feed := func(ev Event) (replies []Reply) {
			for _, cmd := range c.Step(0, ev) {
				switch cmd := cmd.(type) {
				case Propose:
					entries = append(entries, cmd)
				case Reply:
					replies = append(replies, cmd)
				}
			}
			return replies
		}
		feed(Elected{Term: 1, Wall: 1})
		for i := 0; i < len(entries); i++ {
			feed(Entry{Index: uint64(i + 1), Term: 1, Data: entries[i].Data})
		}
		before := len(entries)
		replies := feed(Submit{Token: 1, Submission: &wire.Submission{Key: "k", Staging: place, Plan: wire.Plan{Jobs: []wire.JobPlan{{}}}}})
		switch {
		case want && (len(entries) != before+1 || len(replies) > 0):
			t.Errorf("%s: %+v", place, replies)
		case !want && (len(entries) != before || len(replies) != 1 || !errors.Is(replies[0].Err, admission.ErrBadSubmission)):
			t.Errorf("%s: %+v", place, replies)
		}
		if !want {
			continue
		}
		feed(Entry{Index: uint64(before + 1), Term: 1, Data: entries[before].Data})
		replies = feed(Submit{Token: 2, Submission: &wire.Submission{Key: "another", Staging: place, Plan: wire.Plan{Jobs: []wire.JobPlan{{}}}}})
		if len(replies) != 1 || !errors.Is(replies[0].Err, admission.ErrBadSubmission) {
			t.Errorf("%s, which is another's: %+v", place, replies)
		}
	}
}
