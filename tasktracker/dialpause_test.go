package tasktracker

import (
	"testing"
	"time"
)

// TestDialPauses: while there is no leader, pauses are short during an election. Then they grow, but
// stay shorter than half a lease. They begin again when a job tracker names another leader.
func TestDialPauses(t *testing.T) {
	const lease = 3 * time.Second
	longest := func(p *dialPause) (d time.Duration) {
		for range 20 {
			d = max(d, p.after(streamResult{}))
		}
		return d
	}
	var p dialPause
	for range electionDials {
		if d := p.after(streamResult{}); d > electionDialPause {
			t.Errorf("during an election a pause is %v", d)
		}
	}
	if d := longest(&p); d < maxDialPause/2 || d > maxDialPause {
		t.Errorf("before the first Welcome the longest pause is %v", d)
	}
	p.after(streamResult{registered: true, lease: lease})
	if d := longest(&p); d < lease/4 || d > lease/2 {
		t.Errorf("with a lease of %v the longest pause is %v", lease, d)
	}
	for _, leader := range []string{"a:1", "b:1"} {
		if d := p.after(streamResult{leader: leader}); d > minDialPause {
			t.Errorf("after %s was named the pause is %v", leader, d)
		}
		if d := longest(&p); d > lease/2 {
			t.Errorf("the lease of %v is forgotten: the longest pause is %v", lease, d)
		}
	}
}
