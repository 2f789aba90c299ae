// Package pool has the table of pools: groups of jobs with guaranteed slots, maximum slots and
// weights. [Parse] reads a table from a Hadoop fair scheduler's allocation file; [Table.Apply]
// applies it to the jobs of a snapshot.
//
// Results depend on the arguments alone; there is no I/O.
package pool

import (
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// Table is the pools of a cluster. In the zero Table every name is a pool without limits, of
// weight 1.
type Table struct {
	Pools    []Pool   `msgpack:"Pools"`    // by name
	From     string   `msgpack:"From"`     // the file it was read from; empty: none
	Warnings []string `msgpack:"Warnings"` // the first warnings about settings without effect
}

// Pool is one pool. Slots are by phase: maps, reduces.
type Pool struct {
	Name       string   `msgpack:"Name"`
	Min        [2]int   `msgpack:"Min"`        // guaranteed
	Max        [2]int   `msgpack:"Max"`        // at most; Unlimited
	Weight     float64  `msgpack:"Weight"`     // 0: 1
	MaxRunning int      `msgpack:"MaxRunning"` // jobs that may have slots at a time; Unlimited
	Submitters []string `msgpack:"Submitters"` // users who may submit; none: all users
}

// Unlimited is the maximum of a pool without one.
const Unlimited = -1

func unlimited(name string) Pool {
	return Pool{Name: name, Max: [2]int{Unlimited, Unlimited}, MaxRunning: Unlimited}
}

// Find returns a pool by name. The default pool always exists, and every pool does if the table
// has none.
func (t *Table) Find(name string) (Pool, bool) {
	if name == "" {
		name = wire.DefaultPool
	}
	for _, p := range t.Pools {
		if p.Name == name {
			return p, true
		}
	}
	return unlimited(name), len(t.Pools) == 0 || name == wire.DefaultPool
}

// Admits reports whether a user may submit to the pool. A user without a name may submit only to
// a pool that admits all users.
func (p *Pool) Admits(owner string) bool {
	return len(p.Submitters) == 0 || owner != "" && slices.Contains(p.Submitters, owner)
}

// Name normalizes a pool name in Hadoop's notation: it drops the root queue.
func Name(text string) string {
	return strings.TrimPrefix(strings.TrimSpace(text), "root.")
}
