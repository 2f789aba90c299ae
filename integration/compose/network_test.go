package compose_test

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/quernmr/quern/integration/compose/stack"
	"github.com/quernmr/quern/integration/trial"
)

// machineDisconnected: a machine with a task tracker and a DataNode loses its network for a while.
// Its tasks rerun elsewhere. When it is back, its old attempts end.
func machineDisconnected(c *cluster) {
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	id, maps := c.busiestTracker()
	node := "node" + strings.TrimPrefix(id, "tt")
	net := c.project + "_quern"
	c.docker("network", "disconnect", net, c.container(node))
	c.awaitLost(id)
	j.AwaitBegan("m", 6+maps)
	c.docker("network", "connect", "--ip", address(node), "--alias", node, net, c.container(node))
	c.awaitHealthy()
	j.OpenGate()
	j.checkSuccess()
}

// address returns the network address of a service.
func address(service string) string {
	kind, number := strings.TrimRight(service, "1234"), service[len(service)-1:]
	return network + "." + map[string]string{"jt": "1", "node": "2"}[kind] + number
}

// oneWayPartition: the leader can send, but receives nothing from the other job trackers. It steps
// down, and another one is elected. When the network is repaired, it follows.
func oneWayPartition(c *cluster) {
	j := c.paced(6, "-gate")
	j.AwaitBegan("m", 6)
	old := c.leader()
	rule := func(what string) {
		for _, other := range stack.JobTrackers() {
			if other != old {
				c.inNetworkOf(old, "iptables", what, "INPUT", "-s", address(other), "-j", "DROP")
			}
		}
	}
	rule("-A")
	c.leader(old)
	c.await("end of the term of "+old, func() bool {
		status := c.statusOf(old)
		return status != nil && !status.IsLeader
	})
	j.OpenGate()
	j.checkSuccess()
	j.CheckOnce("m")
	rule("-D")
	c.awaitFollower(old)
}

// slowMachine: one machine sends two megabits a second. A job with data and tasks on it succeeds.
func slowMachine(c *cluster) {
	const in = "hdfs:///test/slow" // few bytes, because the slow machine sends them
	for i := range 6 {
		c.put(fmt.Sprintf("%s/%d", in, i), trial.Words(uint64(i), 1<<20))
	}
	device := c.networkDevice("node3")
	c.inNetworkOf("node3", "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", "2mbit", "burst", "16kb", "latency", "200ms")
	c.compareEmbedded("wordcount", "", "-input", in)
	shown := c.inNetworkOf("node3", "tc", "-s", "qdisc", "show", "dev", device)
	c.inNetworkOf("node3", "tc", "qdisc", "del", "dev", device, "root")
	var sent int
	if _, after, ok := strings.Cut(shown, "Sent "); ok {
		sent, _ = strconv.Atoi(strings.Fields(after)[0]) // 0 if it is not a number
	}
	if sent < 100_000 {
		c.t.Errorf("the slow machine has sent %d bytes, want at least 100000: %s", sent, shown)
	}
}

// networkDevice returns the name of a container's network interface. The name changes when the
// container is disconnected and connected.
func (c *cluster) networkDevice(service string) string {
	c.t.Helper()
	out := c.inNetworkOf(service, "ip", "-o", "-4", "addr", "show")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 3 && strings.HasPrefix(fields[3], address(service)+"/") {
			return fields[1]
		}
	}
	c.t.Fatalf("%s has no interface with %s: %s", service, address(service), out)
	return ""
}

// inNetworkOf runs a command of this machine in a container's network namespace.
func (c *cluster) inNetworkOf(service, command string, args ...string) string {
	c.t.Helper()
	pid := c.inspect(service, "{{.State.Pid}}")
	line := append([]string{"-t", pid, "-n", command}, args...)
	out, err := exec.CommandContext(c.ctx, "nsenter", line...).CombinedOutput()
	if err != nil {
		c.t.Fatal(fmt.Errorf("%s in the network of %s: %w\n%s", command, service, err, out))
	}
	return string(out)
}
