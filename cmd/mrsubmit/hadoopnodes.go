package main

import (
	"context"
	"net"
	"slices"
	"strings"

	"github.com/quernmr/quern/cmd/internal/hadooplog"
	"github.com/quernmr/quern/jobtracker/web"
)

// nodeStates are the states of YARN that a task tracker can have.
var nodeStates = []string{"RUNNING", "UNHEALTHY", "DECOMMISSIONING", "DECOMMISSIONED", "LOST", "SHUTDOWN"}

// yarnNode answers yarn node -list [-all] [-states STATES].
func (t *tool) yarnNode(ctx context.Context, args []string) error {
	const want = "want -list [-all] [-states STATES]"
	if len(args) == 0 || args[0] != "-list" {
		return usagef("yarn node %s is not answered: %s", strings.Join(args, " "), want)
	}
	states := []string{"RUNNING"}
	for args = args[1:]; len(args) > 0; args = args[1:] {
		switch {
		case args[0] == "-all":
			states = nodeStates
		case args[0] == "-states" && len(args) > 1:
			states = strings.Split(strings.ToUpper(args[1]), ",")
			args = args[1:]
		default:
			return usagef("option %s of yarn node -list is not supported, or needs a value: %s", args[0], want)
		}
	}
	q, err := t.hadoopQuery("")
	if err != nil {
		return err
	}
	var nodes []hadooplog.Node
	if q != nil { // without a job tracker there is no cluster
		defer q.cluster.Close()
		c, err := q.cluster.Cluster(ctx)
		if err != nil {
			return err
		}
		nodes = hadoopNodes(c)
	}
	return hadooplog.Nodes(t.stdout, slices.DeleteFunc(nodes, func(n hadooplog.Node) bool { return !slices.Contains(states, n.State) }))
}

// hadoopNodes describes task trackers as YARN does.
func hadoopNodes(c *web.Cluster) (nodes []hadooplog.Node) {
	node := func(host, addr, state string, attempts int) {
		if _, port, err := net.SplitHostPort(addr); err == nil {
			host = net.JoinHostPort(host, port)
		}
		nodes = append(nodes, hadooplog.Node{ID: host, State: state, Addr: addr, Containers: attempts})
	}
	for i := range c.Trackers {
		t := &c.Trackers[i]
		state := "RUNNING"
		switch d := c.Drain(t.ID); {
		case d != nil && d.Drained:
			state = "DECOMMISSIONED"
		case d != nil:
			state = "DECOMMISSIONING"
		case t.Trouble != "":
			state = "UNHEALTHY"
		}
		node(t.Host, t.Addr, state, t.Maps+t.Reduces)
	}
	for i := range c.Lost {
		state := "LOST"
		if c.Lost[i].Stopped {
			state = "SHUTDOWN"
		}
		node(c.Lost[i].Host, c.Lost[i].Addr, state, 0)
	}
	for i := range c.Drains {
		if d := &c.Drains[i]; !d.Registered && d.Drained {
			node(d.Tracker, "", "DECOMMISSIONED", 0)
		}
	}
	return nodes
}
