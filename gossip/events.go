package gossip

import (
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"
)

// memberlist calls these methods while it holds its locks. They must not call memberlist or wait.

// NotifyAlive implements memberlist.AliveDelegate: it refuses members of other clusters.
func (g *Gossip) NotifyAlive(n *memberlist.Node) error {
	if n.Name == g.name {
		return nil
	}
	m, err := decodeMember(n.Meta)
	if err != nil {
		return err
	}
	return g.checkCluster(m, n.Address())
}

// NotifyMerge implements memberlist.MergeDelegate: two clusters never merge.
func (g *Gossip) NotifyMerge(peers []*memberlist.Node) error {
	for _, n := range peers {
		if m, err := decodeMember(n.Meta); err == nil {
			if err := g.checkCluster(m, n.Address()); err != nil {
				return fmt.Errorf("%s %s at %s: %w", m.Role, m.ID, n.Address(), err)
			}
		}
	}
	return nil
}

// maxForeign is the maximum number of job trackers of other clusters that are remembered.
const maxForeign = 16

// checkCluster refuses job trackers of another cluster.
func (g *Gossip) checkCluster(m Member, addr string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.Role != JobTracker || m.Cluster == "" || g.self.Cluster == "" || m.Cluster == g.self.Cluster {
		return nil
	}
	_, known := g.foreign[addr]
	remember := known || len(g.foreign) < maxForeign
	if !known && remember {
		g.log.Error("gossip: refused a job tracker of another cluster",
			"member", m.ID, "at", addr, "its cluster", m.Cluster, "this cluster", g.self.Cluster)
	}
	if remember && g.foreign[addr] != m {
		g.foreign[addr] = m
		g.notifyChange()
	}
	return fmt.Errorf("%w: %s, not %s", errOtherCluster, m.Cluster, g.self.Cluster)
}

// events implements memberlist.EventDelegate.
type events struct{ g *Gossip }

func (e events) NotifyJoin(n *memberlist.Node) { e.g.addMember(n) }

func (e events) NotifyUpdate(n *memberlist.Node) { e.g.addMember(n) }

func (e events) NotifyLeave(n *memberlist.Node) {
	g := e.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if old := g.nodes[n.Name]; old != nil {
		g.log.Info("gossip: gone", "role", old.Role.String(), "member", old.ID, "at", old.addr)
		delete(g.nodes, n.Name)
		if old.Role == JobTracker {
			g.lostAddrs[old.addr] = true
		}
		g.notifyChange()
	}
}

func (g *Gossip) addMember(n *memberlist.Node) {
	if n.Name == g.name {
		return
	}
	m, err := decodeMember(n.Meta)
	if err != nil {
		return // NotifyAlive refused it
	}
	copied := *n
	g.mu.Lock()
	defer g.mu.Unlock()
	current := &node{Member: m, addr: n.Address(), list: &copied, since: time.Now()}
	if old := g.nodes[n.Name]; old != nil {
		current.since = old.since
	} else {
		g.log.Info("gossip: found", "role", m.Role.String(), "member", m.ID, "at", current.addr)
	}
	g.nodes[n.Name] = current
	delete(g.lostAddrs, current.addr)
	g.notifyChange()
}

// NotifyPingComplete implements memberlist.PingDelegate. It ends the suspicion of the member.
func (g *Gossip) NotifyPingComplete(n *memberlist.Node, _ time.Duration, _ []byte) {
	g.setSuspect(n.Name, false)
}

// setSuspect records whether a member is suspected to have died.
func (g *Gossip) setSuspect(name string, suspect bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.nodes[name]; n != nil && n.suspect != suspect {
		n.suspect = suspect
		g.notifyChange()
	}
}

// AckPayload implements memberlist.PingDelegate.
func (g *Gossip) AckPayload() []byte { return nil }

// NodeMeta implements memberlist.Delegate.
func (g *Gossip) NodeMeta(int) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.meta
}

// GetBroadcasts implements memberlist.Delegate.
func (g *Gossip) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState implements memberlist.Delegate.
func (g *Gossip) LocalState(bool) []byte { return nil }

// MergeRemoteState implements memberlist.Delegate.
func (g *Gossip) MergeRemoteState([]byte, bool) {}
