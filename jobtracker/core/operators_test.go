package core

import "testing"

// TestExclusionSince tests that the leader says since when it excludes a tracker. A new leader does not
// know.
func TestExclusionSince(t *testing.T) {
	f, l, bad := smallFleet(t)
	f.failThreeMaps(bad)
	if all := l.exclusionStatuses(); len(all) != 1 || all[0].Since != l.wall() || all[0].Until-all[0].Since != tenMinutes.Milliseconds() {
		t.Errorf("at %d the exclusions are %+v", l.wall(), all)
	}
	f.step(Deposed{})
	f.step(Elected{Term: 1, Wall: 1})
	if all := f.core.leader.exclusionStatuses(); len(all) != 1 || all[0].Since != 0 || all[0].Until == 0 {
		t.Errorf("after an election the exclusions are %+v", all)
	}
}
