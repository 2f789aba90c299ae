package replica

import (
	"testing"
	"time"

	"github.com/quernmr/quern/listen"
	"github.com/quernmr/quern/listen/listentest"
)

// TestSilentConnections: connections that send nothing or a byte are closed. The others take part all the while.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 2, func(c *Config) { c.limits = listen.Limits{PerAddress: 50, Unknown: 100 * time.Millisecond} })
	g.commit("before")
	for _, sent := range []string{"", "\x00"} {
		held := listentest.Hold(t, g.nodes[0].Addr(), 1000, sent)
		g.check(g.commitOnce("while they are held, after " + sent))
		held.AwaitLeft(t, 0)
	}
	g.check(g.commitOnce("after"))
}
