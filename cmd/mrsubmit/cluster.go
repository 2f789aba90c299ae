package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/replica"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

const clusterHelp = `Without more, tells who leads, which job trackers vote and how the task trackers
are.

  mrsubmit cluster scheduler [-metric METRIC] [-delay RULE] [NAME]
        tells how slots are shared among jobs, or changes it at once and for good,
        whatever the job trackers were started with; what is not said stays.
        docs/scheduling.md tells which scheduler is for what.

  mrsubmit cluster drain TRACKER [-wait]
        lets a task tracker leave: it is given no new work, what it runs ends by itself,
        and its map outputs are served until no job needs them, or made anew elsewhere
        if that would take long. Then it ends, with status 0. No job fails or loses
        time by it but for the slots that are gone. -wait waits until it is drained.
        Started again it is given nothing. For administrators. (kubectl drain, YARN's
        decommissioning)

  mrsubmit cluster undrain TRACKER
        has a task tracker given work again that drains or is drained; one that has
        ended is to be started. (kubectl uncordon, YARN's recommissioning)

  mrsubmit cluster remove ID
        takes the vote of a job tracker away that will not come back

  mrsubmit cluster certs DIR [-jobtracker ID,…] [-tasktracker ID,…] [-client NAME,…] [-days 365]
        makes a cluster's authority in DIR/authority, once, and a directory for the
        -tls-dir of each daemon and user: DIR/tasktracker-tt1, DIR/client-alice. Run
        again it renews them. Keep DIR/authority where no daemon is.

  mrsubmit cluster recover -data DIR -id ID -raft HOST:PORT
        after the majority of the job trackers is lost for good: makes the one whose
        -data, -id and advertised -raft address these are, and which does not run, a
        cluster of its own; then start it. Choose the one that knew most. Others join
        it with empty directories; never start one of them with its old directory.`

// clusterCommand is mrsubmit cluster and what may stand behind it.
func (t *tool) clusterCommand(ctx context.Context, args []string) int {
	if len(args) > 0 {
		switch args[0] {
		case "recover":
			return t.recover(args[1:])
		case "certs":
			return t.certs(args[1:])
		case "scheduler":
			return asking("cluster", 0, 1, (*query).scheduler, schedulingFlags)(t, ctx, args[1:])
		case "drain":
			return asking("cluster", 1, 1, (*query).drain, drainFlags)(t, ctx, args[1:])
		case "undrain":
			return asking("cluster", 1, 1, (*query).undrain)(t, ctx, args[1:])
		case "remove":
			return asking("cluster", 1, 1, (*query).removeVoter)(t, ctx, args[1:])
		}
	}
	return asking("cluster", 0, 0, (*query).showCluster)(t, ctx, args)
}

func (q *query) showCluster(ctx context.Context) error {
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(c)
	}
	fmt.Fprintf(q.stdout, "cluster %s, begun %s\nstaging %s\n", client.OneLine(c.ID), timeText(c.Start), client.OneLine(c.Staging))
	fmt.Fprintln(q.stdout, leaderText(c))
	if ahead := time.Until(c.Wall); ahead > skewTold {
		fmt.Fprintf(q.stdout, "its clock is %s ahead of the one here\n", client.Duration(ahead))
	} else if ahead < -skewTold {
		fmt.Fprintf(q.stdout, "its clock is %s behind the one here\n", client.Duration(-ahead))
	}
	if err := q.showScheduling(c); err != nil {
		return err
	}
	fmt.Fprintln(q.stdout)
	rows := [][]string{{"VOTER", "ADDRESS"}}
	for _, v := range c.Voters {
		rows = append(rows, []string{v.ID, v.Addr})
	}
	if err := q.table(rows); err != nil {
		return err
	}
	fmt.Fprintln(q.stdout)
	rows = [][]string{{"TRACKER", "HOST", "RACK", "ADDRESS", "MAPS", "REDUCES", "STATE"}}
	for i := range c.Trackers {
		t := &c.Trackers[i]
		rows = append(rows, []string{
			t.ID, t.Host, t.Rack, t.Addr, fmt.Sprintf("%d/%d", t.Maps, t.MapSlots), fmt.Sprintf("%d/%d", t.Reduces, t.ReduceSlots), trackerState(t, c.Drain(t.ID)),
		})
	}
	for i := range c.Lost {
		t := &c.Lost[i]
		rows = append(rows, []string{t.ID, t.Host, t.Rack, t.Addr, "-", "-", lostState(t, c.Wall)})
	}
	for i := range c.Drains {
		if d := &c.Drains[i]; !d.Here {
			rows = append(rows, []string{d.Tracker, "-", "-", "-", "-", "-", drainState(d)})
		}
	}
	return q.table(rows)
}

// leaderText tells who leads or, when nobody does, who did.
func leaderText(c *web.Cluster) string {
	leader := fmt.Sprintf("%s at %s", client.OneLine(c.Leader), client.OneLine(c.Addr))
	switch {
	case c.Leads:
		return fmt.Sprintf("leader %s, epoch %d, %s", leader, c.Epoch, counted(c.Jobs, "unfinished job"))
	case c.Leader == "":
		return "no leader; the job tracker that answers has never known one"
	}
	return fmt.Sprintf("no leader; the last one known was %s in epoch %d", leader, c.Epoch)
}

// skewTold is the difference of clocks from which it is worth a line.
const skewTold = 5 * time.Second

func trackerState(t *web.Tracker, d *web.Drain) string {
	var parts []string
	if !t.Connected {
		parts = append(parts, "not connected, silent for "+elapsedText(t.SilentMillis))
	}
	if d != nil {
		parts = append(parts, drainState(d))
	}
	if t.Excluded != "" {
		parts = append(parts, "excluded: "+t.Excluded)
	}
	if t.Trouble != "" {
		parts = append(parts, t.Trouble)
	}
	if len(parts) == 0 {
		return "good"
	}
	return strings.Join(parts, "; ")
}

// lostState says since when a tracker is lost, what it ran and what it had.
func lostState(t *web.LostTracker, now time.Time) string {
	var ran, was []string
	if t.Maps > 0 {
		ran = append(ran, counted(t.Maps, "map"))
	}
	if t.Reduces > 0 {
		ran = append(ran, counted(t.Reduces, "reduce"))
	}
	if len(ran) > 0 {
		was = append(was, "ran "+strings.Join(ran, " and "))
	}
	if t.Outputs > 0 {
		was = append(was, "had "+counted(t.Outputs, "map output"))
	}
	text := fmt.Sprintf("lost since %s (%s)", timeText(t.Since), untilText(t.Since, now))
	if len(was) > 0 {
		text += ": " + strings.Join(was, ", ")
	}
	return text
}

// counted is a number with its noun, given in the singular.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (q *query) removeVoter(ctx context.Context) error {
	return q.cluster.RemoveVoter(ctx, q.args[0])
}

// recover makes a stopped job tracker's state the only voter.
func (t *tool) recover(args []string) int {
	set := newFlags("cluster recover")
	data := set.String("data", "", "`directory` of the job tracker, as it was started with")
	id := set.String("id", "", "`name` of the job tracker, as it was started with")
	addr := set.String("raft", "", "its advertised -raft `address`, host:port")
	rest, err := parseMixed(set, args)
	switch {
	case err != nil:
	case len(rest) > 0:
		err = wrong("unexpected argument %q", rest[0])
	case *data == "" || *id == "" || *addr == "":
		err = wrong("recover needs -data, -id and -raft")
	default:
		if _, _, split := net.SplitHostPort(*addr); split != nil {
			err = wrong("-raft: %v", split)
		} else if err = replica.Recover(daemon.LogDir(*data), *id, *addr); err == nil {
			fmt.Fprintf(t.stderr, "%s is now the only voter; start it\n", *id)
		}
	}
	return t.exitCode("cluster", set, err)
}

// errNotShared reports local files in a job for several machines.
var errNotShared = errors.New("a local file on a cluster of several machines")

// checkShared refuses local paths where trackers are on several machines, unless
// the user says that they are shared.
func checkShared(plan *wire.Plan, c *web.Cluster, shared bool) error {
	machines := make(map[string]bool)
	for i := range c.Trackers {
		host, _, err := net.SplitHostPort(c.Trackers[i].Addr)
		if ip := net.ParseIP(host); err != nil || ip != nil && ip.IsLoopback() || host == "localhost" {
			host = "localhost"
		}
		machines[host] = true
	}
	name := localName(plan)
	if shared || len(machines) < 2 || name == "" {
		return nil
	}
	return fmt.Errorf("%s is %w: if all of its %d machines share it, say -shared-local", name, errNotShared, len(machines))
}

// localName is the first local file or directory that a plan names.
func localName(plan *wire.Plan) string {
	isLocal := func(name string) bool {
		return name != "" && (strings.HasPrefix(name, "file://") || !strings.Contains(name, "://"))
	}
	for i := range plan.Jobs {
		j := &plan.Jobs[i]
		for _, in := range j.Inputs {
			for _, p := range in.Paths {
				if isLocal(p) {
					return p
				}
			}
		}
		for _, f := range j.Files {
			if isLocal(f) {
				return f
			}
		}
		if isLocal(j.Output) {
			return j.Output
		}
	}
	return ""
}

// reach asks the job trackers what a submission to them needs to know.
func (t *tool) reach(ctx context.Context, addrs []string, who *identity.Identity) (*web.Client, *web.Cluster, error) {
	c := web.NewClient(addrs)
	c.Secure(who.Dialer(identity.JobTracker))
	c.Note = func(line string) { fmt.Fprintln(t.stderr, line) }
	about, err := c.Cluster(ctx)
	if err == nil {
		err = checkStaging(about)
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, about, nil
}

// checkStaging refuses a cluster whose staging directory this machine does not
// see: what would be staged there, nobody would find.
func checkStaging(about *web.Cluster) error {
	if about.Staging == "" {
		return errors.New("the cluster has no staging directory yet")
	}
	proof := dfs.Join(about.Staging, wire.StagingClusters, about.ID)
	if _, err := files().Stat(proof); err != nil {
		return fmt.Errorf("the cluster's staging directory %s is not shared with this machine: %w", about.Staging, err)
	}
	return nil
}
