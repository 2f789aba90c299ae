package menu

import (
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/scheduler"
)

// TestMenu: every name has one policy, which plans for nobody.
func TestMenu(t *testing.T) {
	names := Names()
	for i, name := range names {
		policy, err := Policy(name)
		if err != nil {
			t.Fatal(err)
		}
		if plan, err := policy.Plan(scheduler.Snapshot{Slots: 3}); err != nil || len(plan.Targets) > 0 {
			t.Errorf("%s plans %+v for nobody: %v", name, plan, err)
		}
		if slices.Contains(names[:i], name) {
			t.Errorf("%s is on the menu twice", name)
		}
	}
}

// TestUnknown: a policy that is not on the menu, of another version perhaps, is not found,
// is shown everything but pools, and heeds all terms.
func TestUnknown(t *testing.T) {
	want := `scheduler "lottery": want one of ` + strings.Join(Names(), ", ")
	if _, err := Policy("lottery"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := NeedsOf("lottery"); got != (Needs{Trackers: true, Later: true, Transfers: true}) {
		t.Errorf("it is shown %+v", got)
	}
	if got := HeedsOf("lottery", scheduler.Metric{}); got != (Heeds{true, true, true, true}) {
		t.Errorf("it heeds %+v", got)
	}
}
