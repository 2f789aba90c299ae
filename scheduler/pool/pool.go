// Package pool is the table of pools: what groups of jobs are guaranteed of a
// cluster's slots, what they may use at most, and by which weights they share them.
// A table is read from a Hadoop fair scheduler's allocation file ([Parse]) and
// shapes the jobs of a snapshot ([Table.Shape]).
//
// Everything here is a function of values.
package pool

import (
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// Table is the pools of a cluster. The zero Table has none: every name is a pool
// without minima and maxima, of weight 1.
type Table struct {
	Pools    []Pool   `msgpack:"Pools"`    // by name
	From     string   `msgpack:"From"`     // the file it was read from; empty: none
	Warnings []string `msgpack:"Warnings"` // what the file says and nobody obeys, the first of it
}

// Pool is one pool. Slots are by phase: maps, reduces.
type Pool struct {
	Name       string   `msgpack:"Name"`
	Min        [2]int   `msgpack:"Min"`        // guaranteed
	Max        [2]int   `msgpack:"Max"`        // at most; Unlimited
	Weight     float64  `msgpack:"Weight"`     // 0: 1
	MaxRunning int      `msgpack:"MaxRunning"` // jobs that have slots at a time; Unlimited
	Submitters []string `msgpack:"Submitters"` // who may submit; none: everybody
}

// Unlimited is the maximum of a pool that has none.
const Unlimited = -1

func unlimited(name string) Pool {
	return Pool{Name: name, Max: [2]int{Unlimited, Unlimited}, MaxRunning: Unlimited}
}

// Find finds a pool. The default pool is there even when the table does not name
// it, and every pool is when the table names none.
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

// Admits says whether somebody may submit to the pool. Who has no name is nobody.
func (p *Pool) Admits(owner string) bool {
	return len(p.Submitters) == 0 || owner != "" && slices.Contains(p.Submitters, owner)
}

// Name is the name of a pool as users of Hadoop may write it: root is the queue that
// all others are in.
func Name(text string) string {
	return strings.TrimPrefix(strings.TrimSpace(text), "root.")
}
