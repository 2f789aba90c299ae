package locality

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Level is how near data that is kept on some machines, which stand in some racks,
// is to a machine in a rack. Hosts are as [HostKey] gives them. Data that is
// nowhere in particular has no level.
func Level(hosts, racks []string, host, rack string) wire.Level {
	if len(hosts) == 0 {
		return 0
	}
	level := wire.Remote
	for _, h := range hosts {
		if h == host {
			return wire.NodeLocal
		}
	}
	for _, r := range racks {
		if r != "" && r == rack {
			level = wire.RackLocal
		}
	}
	return level
}

// Wait is how the delay rules none and fixed have a map wait for a slot near its
// input: for so long in all, then anywhere. None is 0.
type Wait time.Duration

// Patience is the same for slots in the rack and for any: of those that are free
// when it ends, one in the rack comes first.
func (w Wait) Patience(wire.Level) time.Duration { return time.Duration(w) }

// ErrBadDelay reports a delay rule that is none of those here.
var ErrBadDelay = errors.New("want none, or fixed with a time, like fixed=3s")

// ParseWait reads the name of a rule: none, or fixed=3s.
func ParseWait(rule string) (Wait, error) {
	text, fixed := strings.CutPrefix(rule, "fixed=")
	if !fixed && rule != "none" {
		return 0, fmt.Errorf("%q: %w", rule, ErrBadDelay)
	}
	if !fixed {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil || wait < 0 {
		return 0, fmt.Errorf("%q: %w", rule, ErrBadDelay)
	}
	return Wait(wait), nil
}
