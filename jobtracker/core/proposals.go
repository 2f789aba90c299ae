package core

import "github.com/quernmr/quern/jobtracker/core/facts"

// proposals maps keys to encoded facts that are proposed and not yet in the log.
type proposals map[string][]byte

// propose proposes a fact, unless it is proposed already or would change nothing.
func (p proposals) propose(c *Core, x facts.Fact) {
	key := x.Name()
	if p[key] != nil || !x.Fits(c.facts) {
		return
	}
	p[key] = facts.Encode(x)
	c.emit(Propose{Key: key, Data: p[key]})
}

// repropose repeats a proposal that may be lost.
func (p proposals) repropose(c *Core, key string) {
	if data := p[key]; data != nil {
		c.emit(Propose{Key: key, Data: data})
	}
}

func (p proposals) drop(key string) { delete(p, key) }

func (p proposals) has(x facts.Fact) bool { return len(p) > 0 && p[x.Name()] != nil }
