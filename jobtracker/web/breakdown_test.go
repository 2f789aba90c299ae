package web

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/breakdown"
	"github.com/quernmr/quern/wire"
)

// TestUnknownLevels: maps of unknown locality have no level, as in lists of attempts.
func TestUnknownLevels(t *testing.T) {
	x := &jobtracker.JobBreakdown{Breakdown: new(breakdown.Breakdown)}
	x.Levels = [...]int{0: 3, wire.NodeLocal: 2, wire.RackLocal: 0, wire.Remote: 1}
	if got := breakdownOf(wire.JobID{}, x).Levels; !slices.Equal(got, []LevelCount{{"node-local", 2}, {"remote", 1}}) {
		t.Errorf("the levels are %v", got)
	}
}
