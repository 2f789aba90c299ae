package locality

import (
	"errors"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

func TestTopology(t *testing.T) {
	var topo Topology
	if got := topo.Rack("a", ""); got != DefaultRack {
		t.Errorf("an unknown machine is in %s", got)
	}
	if got := topo.Rack("a", "/r1"); got != "/r1" || topo.Conflict("a", "/r1") != "" {
		t.Errorf("a machine with -rack /r1 is in %s", got)
	}
	if topo.Learn("a", "") || !topo.Learn("A.", "/r2") || topo.Learn("a", "/r2") {
		t.Error("Learn does not report what is new")
	}
	if got := topo.Rack("a", "/r1"); got != "/r2" || topo.Conflict("a", "/r1") == "" || topo.Conflict("a", "/r2") != "" {
		t.Errorf("the machine is in %s, conflict %q", got, topo.Conflict("a", "/r1"))
	}
	if !topo.Learn("a", "/r1") || topo.Rack("a", "") != "/r1" {
		t.Error("a moved machine is in its old rack")
	}
}

func TestCheckRack(t *testing.T) {
	for rack, good := range map[string]bool{
		"": true, "/r": true, "/dc1/r7": true, "r": false, "/": false, "/r/": false, "//r": false, "/a b": false,
	} {
		if err := CheckRack(rack); (err == nil) != good || err != nil && !errors.Is(err, ErrBadRack) {
			t.Errorf("%q: %v", rack, err)
		}
	}
}

func TestLevel(t *testing.T) {
	hosts, racks := []string{"a", "b"}, []string{"/r1", ""}
	for _, c := range []struct {
		host, rack string
		want       wire.Level
	}{
		{"a", "/r9", wire.NodeLocal}, {"b", "/r9", wire.NodeLocal}, {"c", "/r1", wire.RackLocal}, {"c", "/r2", wire.Remote}, {"c", "", wire.Remote},
	} {
		if got := Level(hosts, racks, c.host, c.rack); got != c.want {
			t.Errorf("%s in %s: %v, want %v", c.host, c.rack, got, c.want)
		}
	}
	if got := Level(nil, nil, "a", "/r1"); got != 0 {
		t.Errorf("data without location has level %v", got)
	}
}

// TestPatience: none and fixed wait the same time for slots at every level.
func TestPatience(t *testing.T) {
	for text, want := range map[string]time.Duration{"none": 0, "fixed=3s": 3 * time.Second, "fixed=0s": 0} {
		rule, err := ParseRule(text)
		if err != nil || rule.Patience(wire.RackLocal) != want || rule.Patience(wire.Remote) != want {
			t.Errorf("%s: %v, %v", text, rule, err)
		}
	}
}
