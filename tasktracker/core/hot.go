package core

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/wire"
)

// A home knows the largest groups of its merged runs. Other runs it has not read. A key that is large in several
// runs is counted in those in which it is among the largest: its bytes are a lower bound until one merge has
// read them all.

// updateHot finds the hot groups of a home, after its runs have changed.
func (h *home) updateHot() {
	hot := &wire.Hot{}
	for _, r := range h.runs {
		if r.hot == nil {
			continue
		}
		hot.Read += r.hot.Read
		for _, g := range r.hot.Groups {
			i := slices.IndexFunc(hot.Groups, func(x wire.HotGroup) bool { return x.Key == g.Key })
			if i < 0 {
				hot.Groups = append(hot.Groups, g)
				continue
			}
			hot.Groups[i].Records += g.Records
			hot.Groups[i].Bytes += g.Bytes
		}
	}
	hot.Of = hot.Read
	hot.Groups = slices.DeleteFunc(hot.Groups, func(g wire.HotGroup) bool { return !wire.IsHot(g.Bytes, hot.Of) })
	slices.SortFunc(hot.Groups, func(a, b wire.HotGroup) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Key, b.Key))
	})
	h.hot = hot.Bound().After(h.hot)
}

// hotBytes returns an upper bound of the length of hot groups in a frame.
func hotBytes(h *wire.Hot) int {
	if h == nil {
		return 0
	}
	n := 30
	for _, g := range h.Groups {
		n += 50 + len(g.Key)
	}
	return n
}
