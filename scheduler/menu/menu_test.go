package menu

import (
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/scheduler"
)

// TestMenu: every name has one policy, and it plans an empty snapshot.
func TestMenu(t *testing.T) {
	names := Names()
	for i, name := range names {
		policy, err := Policy(name)
		if err != nil {
			t.Fatal(err)
		}
		if plan, err := policy.Plan(scheduler.Snapshot{Slots: 3}); err != nil || len(plan.Targets) > 0 {
			t.Errorf("%s plans %+v without jobs: %v", name, plan, err)
		}
		if slices.Contains(names[:i], name) {
			t.Errorf("%s is on the menu twice", name)
		}
	}
}

// TestUnknown: an unknown policy, perhaps of another version, is not found, needs every field
// but Pools, and counts as using all settings.
func TestUnknown(t *testing.T) {
	want := `scheduler "lottery": want one of ` + strings.Join(Names(), ", ")
	if _, err := Policy("lottery"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := NeedsOf("lottery"); got != (Needs{Trackers: true, Later: true, Transfers: true}) {
		t.Errorf("needs %+v", got)
	}
	if got := UsesOf("lottery", scheduler.Metric{}); got != (Uses{true, true, true, true}) {
		t.Errorf("uses %+v", got)
	}
}
