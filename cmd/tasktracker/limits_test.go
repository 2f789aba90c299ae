package main

import (
	"testing"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/tasktracker/cgroup"
)

// TestOffer: in a container with limits, these are offered, and not those of the machine.
func TestOffer(t *testing.T) {
	for _, c := range []struct {
		group cgroup.Inherited
		want  offer
	}{
		{cgroup.Inherited{}, offer{slots: 8}},
		{cgroup.Inherited{Memory: 4 << 30}, offer{slots: 8, memory: 4<<30 - 256<<20}},
		{cgroup.Inherited{Memory: 400 << 20}, offer{slots: 8, memory: 300 << 20}},
		{cgroup.Inherited{Cores: 2.5}, offer{slots: 2, cores: 2}},
		{cgroup.Inherited{Cores: 0.5}, offer{slots: 1, cores: 1}},
		{cgroup.Inherited{Cores: 16}, offer{slots: 8}},
	} {
		if got := offerOf(8, c.group); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.group, got, c.want)
		}
	}
}

func TestMaximumFlags(t *testing.T) {
	flags := func(args ...string) []string {
		return append([]string{"-insecure", "-join", "127.0.0.1:1", "-data", t.TempDir()}, args...)
	}
	o, err := parse(flags("-max-memory", "4g", "-max-processes", "20", "-max-cores", "2", "-strict-cores"), daemon.Output{})
	if err != nil {
		t.Fatal(err)
	}
	if m := o.maximum; m.Memory != 4<<30 || m.Processes != 20 || m.Cores != 2 || !m.StrictCores {
		t.Errorf("got %+v", m)
	}
	for _, wrong := range [][]string{{"-max-memory", "-1"}, {"-max-processes", "-1"}, {"-max-cores", "-2"}} {
		if _, err := parse(flags(wrong...), daemon.Output{}); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}
