package replica

import (
	"testing"
	"time"

	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/listen/listentest"
)

// TestSilentConnections: connections that send nothing are closed. The others take part all the while.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 2, func(c *Config) { c.limits = listen.Limits{PerAddress: 50, FirstByte: 100 * time.Millisecond} })
	g.commit("before")
	held := listentest.Hold(t, g.nodes[0].Addr(), 2000)
	g.check(g.commitOnce("while they are held"))
	held.AwaitLeft(t, 0)
	g.check(g.commitOnce("after"))
}
