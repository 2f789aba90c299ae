package mem

import (
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"

	"github.com/quernmr/quern/dfs"
)

// change has the entries that one call changed. They become durable together.
type change []entry

// entry is a name in a directory and its new node.
type entry struct {
	dir  *node
	name string
	node *node // nil: the name is removed
}

// Settle makes everything durable. An FS tracks durability from its first Settle on; call
// it before PowerCut.
func (f *FS) Settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settle()
}

func (f *FS) settle() {
	f.tracked, f.changes = true, nil
	f.root.settle()
}

func (n *node) settle() {
	n.durable, n.durableSize = maps.Clone(n.entries), len(n.data)
	for _, child := range n.entries {
		child.settle()
	}
}

// PowerCut simulates a power cut. Durable changes stay. Of the other changes, at random:
//
//   - Some changes of directories stay. A change of a name stays only with all earlier
//     changes of that name.
//   - Each file keeps a prefix of its data.
//
// Open files must not be used afterwards.
func (f *FS) PowerCut(rnd *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	probability := rnd.Float64()
	f.makeDurable(func(change) bool { return rnd.Float64() < probability })
	f.root.loseUnsynced(rnd)
	f.settle()
}

func (n *node) loseUnsynced(rnd *rand.Rand) {
	n.data = n.data[:n.durableSize+rnd.IntN(len(n.data)-n.durableSize+1)]
	if n.entries == nil {
		return
	}
	n.entries = make(map[string]*node, len(n.durable))
	for _, name := range slices.Sorted(maps.Keys(n.durable)) { // sorted, so that a seed gives one result
		n.entries[name] = n.durable[name]
		n.durable[name].loseUnsynced(rnd)
	}
}

// SyncDir makes a directory's entries durable, and nothing else.
func (f *FS) SyncDir(name string) error {
	return f.call("syncdir", name, func() error {
		n, err := f.find(name)
		if err == nil && n.entries == nil {
			err = syscall.ENOTDIR
		}
		if err == nil {
			f.sync(n)
		}
		return err
	})
}

func (f *FS) sync(dir *node) {
	f.makeDurable(func(c change) bool {
		return slices.ContainsFunc(c, func(e entry) bool { return e.dir == dir })
	})
}

// track records a change of directories.
func (f *FS) track(c ...entry) {
	if f.tracked {
		f.changes = append(f.changes, c)
	}
}

// trackTree records the removal of a tree, name by name.
func (f *FS) trackTree(dir *node, name string) {
	n := dir.entries[name]
	if n == nil || !f.tracked {
		return
	}
	for _, child := range slices.Sorted(maps.Keys(n.entries)) {
		f.trackTree(n, child)
	}
	f.track(entry{dir, name, nil})
}

// makeDurable makes the chosen changes durable, and all earlier changes of the same names.
func (f *FS) makeDurable(chosen func(change) bool) {
	var durable, pending []change
	names := make(map[entry]bool) // directories and names; node is nil
	for _, c := range slices.Backward(f.changes) {
		if !chosen(c) && !slices.ContainsFunc(c, func(e entry) bool { return names[entry{e.dir, e.name, nil}] }) {
			pending = append(pending, c)
			continue
		}
		for _, e := range c {
			names[entry{e.dir, e.name, nil}] = true
		}
		durable = append(durable, c)
	}
	slices.Reverse(pending)
	f.changes = pending
	for _, c := range slices.Backward(durable) {
		for _, e := range c {
			e.makeDurable()
		}
	}
}

func (e entry) makeDurable() {
	if e.node == nil {
		delete(e.dir.durable, e.name)
		return
	}
	if e.dir.durable == nil {
		e.dir.durable = make(map[string]*node)
	}
	e.dir.durable[e.name] = e.node
}

// Volatile returns the same FS without durability: data survives a power cut only by
// chance. See dfs.Volatile.
func (f *FS) Volatile() dfs.FS { return volatile{f} }

type volatile struct{ *FS }

func (f volatile) SyncDir(string) error       { return nil }
func (f volatile) MkdirAll(name string) error { return f.mkdirAll(name, false) }

func (f volatile) Create(name string) (dfs.Writer, error) {
	w, err := f.FS.Create(name)
	if err == nil {
		w.(*writer).durable = false
	}
	return w, err
}
