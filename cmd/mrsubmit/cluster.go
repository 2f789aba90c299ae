package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// clusterCommands are the subcommands of mrsubmit cluster.
func clusterCommands() []command {
	trackers := []candidate{ofTrackers}
	return []command{
		{name: "cluster scheduler", synopsis: "[-metric METRIC] [-delay RULE] [-json] [NAME]", summary: "show how jobs share slots, or change it", help: schedulerHelp(),
			query: (*query).scheduler, flags: schedulingFlags, max: 1, words: []candidate{ofSchedulers},
			examples: []string{"cluster scheduler", "cluster scheduler flex -metric max-tardiness -delay dynamic"}},
		{name: "cluster drain", synopsis: "[-wait] [-json] TRACKER", summary: "take a task tracker out of service without loss", help: drainHelp,
			query: (*query).drain, flags: drainFlags, min: 1, max: 1, words: trackers, examples: []string{"cluster drain -wait tt3"}},
		{name: "cluster undrain", synopsis: "[-json] TRACKER", summary: "give work to a drained task tracker again", help: undrainHelp,
			query: (*query).undrain, min: 1, max: 1, words: trackers, examples: []string{"cluster undrain tt3"}},
		{name: "cluster exclude", synopsis: "[-reason TEXT] [-for DURATION] [-json] TRACKER", summary: "give a task tracker no new work", help: excludeHelp,
			query: (*query).exclude, flags: excludeFlags, min: 1, max: 1, words: trackers, examples: []string{"cluster exclude -reason 'disk errors' -for 90m tt3"}},
		{name: "cluster readmit", synopsis: "[-json] TRACKER", summary: "end the exclusion of a task tracker", help: readmitHelp,
			query: (*query).readmit, min: 1, max: 1, words: trackers, examples: []string{"cluster readmit tt3"}},
		{name: "cluster remove", synopsis: "[-json] ID", summary: "remove the vote of a job tracker that will not come back",
			query: (*query).removeVoter, min: 1, max: 1, words: []candidate{ofVoters}, examples: []string{"cluster remove jt2"}},
		{name: "cluster certs", synopsis: "[-jobtracker ID,…] [-tasktracker ID,…] [-client NAME,…] [-metrics NAME,…] [-days DAYS] [DIR]", summary: "make or renew the certificates of a cluster", help: certsHelp,
			run: (*tool).certs, words: []candidate{ofFiles}, examples: []string{"cluster certs -jobtracker jt1,jt2,jt3 -tasktracker tt1,tt2 -client ann ./certs"}},
	}
}

// clusterHelp is the help of mrsubmit cluster.
func clusterHelp() string {
	var b strings.Builder
	b.WriteString("Without a subcommand: shows the leader, the voters, the scheduler, the pools, the task\ntrackers and the limits.\n")
	for _, c := range clusterCommands() {
		fmt.Fprintf(&b, "\n  mrsubmit %s %s\n        %s", c.name, c.synopsis, c.summary)
	}
	return b.String()
}

const drainHelp = `The task tracker gets no new attempts. Running attempts end by themselves. It serves its
map outputs until no job needs them; if that would take long, their maps rerun elsewhere.
Then the daemon ends with exit code 0. Jobs lose nothing but the slots. A drained task
tracker that is started again gets no work until mrsubmit cluster undrain. On a protected
cluster only administrators may drain. Like kubectl drain, and decommissioning in YARN.`

const undrainHelp = `The task tracker may be draining or drained. If its daemon has ended, start it again.
Like kubectl uncordon, and recommissioning in YARN.`

const excludeHelp = `The task tracker gets no new attempts until mrsubmit cluster readmit, or until the time of
-for is over. Its running attempts continue, and it serves its map outputs. Unlike a
drained task tracker it stays. mrsubmit cluster shows who excluded it, when and why. On a
protected cluster only administrators may exclude.`

const readmitHelp = `Ends an exclusion by an operator, and one by the leader, which excludes task trackers where
too many attempts fail. The task tracker gets work at once.`

const certsHelp = `Makes the cluster's authority in DIR/authority, once, and a directory for the -tls-dir of
each daemon and user, such as DIR/tasktracker-tt1 and DIR/client-alice. Later runs renew
the certificates. Keep DIR/authority on a machine without daemons. The default of DIR is
the directory of the automatic authority, quern in $XDG_STATE_HOME or ~/.local/state: then
the certificates are for your daemons without -tls-dir.`

// clusterCommand runs mrsubmit cluster or one of its subcommands.
func (t *tool) clusterCommand(ctx context.Context, args []string) int {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		if c := find(clusterCommands(), "cluster "+args[0]); c != nil {
			return c.execute(t, ctx, args[1:])
		}
		fmt.Fprintf(t.stderr, "mrsubmit cluster: unknown subcommand %q%s; see mrsubmit cluster -h\n", args[0], spelling.DidYouMean("", "cluster "+args[0], names(clusterCommands())))
		return exitUsage
	}
	show := command{name: "cluster", query: (*query).showCluster}
	return show.execute(t, ctx, args)
}

func (q *query) showCluster(ctx context.Context) error {
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return err
	}
	if q.json {
		return q.printJSON(c)
	}
	fmt.Fprintf(q.stdout, "cluster %s, created %s\nstaging %s\n", client.OneLine(c.ID), timeText(c.Start), client.OneLine(c.Staging))
	fmt.Fprintln(q.stdout, leaderText(c))
	if ahead := time.Until(c.Wall); ahead > minSkew {
		fmt.Fprintf(q.stdout, "its clock is %s ahead of this machine's\n", client.Duration(ahead))
	} else if ahead < -minSkew {
		fmt.Fprintf(q.stdout, "its clock is %s behind this machine's\n", client.Duration(-ahead))
	}
	if err := q.showScheduling(c); err != nil {
		return err
	}
	fmt.Fprintln(q.stdout)
	rows := [][]string{{"VOTER", "ADDRESS"}}
	for _, v := range c.Voters {
		addr := v.Addr
		if v.Nonvoter {
			addr += " (catching up, does not vote yet)"
		}
		rows = append(rows, []string{v.ID, addr})
	}
	if err := q.printTable(rows); err != nil {
		return err
	}
	fmt.Fprintln(q.stdout)
	rows = [][]string{{"TRACKER", "HOST", "RACK", "ADDRESS", "MAPS", "REDUCES", "STATE"}}
	for i := range c.Trackers {
		t := &c.Trackers[i]
		rows = append(rows, []string{
			t.ID, t.Host, t.Rack, t.Addr, fmt.Sprintf("%d/%d", t.Maps, t.MapSlots), fmt.Sprintf("%d/%d", t.Reduces, t.ReduceSlots), trackerState(c, t),
		})
	}
	for i := range c.Lost {
		t := &c.Lost[i]
		rows = append(rows, []string{t.ID, t.Host, t.Rack, t.Addr, "-", "-", lostState(t, c.Wall)})
	}
	for i := range c.Drains {
		if d := &c.Drains[i]; !d.Registered {
			rows = append(rows, []string{d.Tracker, "-", "-", "-", "-", "-", drainState(d)})
		}
	}
	for i := range c.Exclusions {
		if x := &c.Exclusions[i]; !x.Registered {
			rows = append(rows, []string{x.Tracker, "-", "-", "-", "-", "-", exclusionState(x, c.Wall) + ", not registered"})
		}
	}
	if err := q.printTable(rows); err != nil {
		return err
	}
	if err := q.showOffers(c); err != nil {
		return err
	}
	if err := q.showSame("LIMITS OF ATTEMPTS", c, func(t *web.Tracker) string { return t.Limits }); err != nil {
		return err
	}
	if err := q.showSame("ISOLATION OF JOBS", c, func(t *web.Tracker) string { return t.Isolation }); err != nil {
		return err
	}
	return q.showLimits(c)
}

// showLimits prints the administrator's limits.
func (q *query) showLimits(c *web.Cluster) error {
	if len(c.Limits) == 0 {
		return nil
	}
	rows := [][]string{{"LIMIT", "USED", "MOST USED BY"}}
	for _, x := range c.Limits {
		rows = append(rows, []string{x.Name, boundText(x.Used, 0, x.Max), cmp.Or(x.Of, "-")})
	}
	fmt.Fprintln(q.stdout)
	return q.printTable(rows)
}

// showOffers prints the memory and cores that task trackers offer, if one of them does.
func (q *query) showOffers(c *web.Cluster) error {
	rows := [][]string{{"TRACKER", "MEMORY", "CORES"}}
	for i := range c.Trackers {
		t := &c.Trackers[i]
		memory, cores := "-", "-"
		if t.Memory != nil {
			memory = client.Size(t.Memory.Used) + "/" + client.Size(t.Memory.Total)
		}
		if t.Cores != nil {
			cores = fmt.Sprintf("%d/%d", t.Cores.Used, t.Cores.Total)
		}
		if t.Memory != nil || t.Cores != nil {
			rows = append(rows, []string{t.ID, memory, cores})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	fmt.Fprintln(q.stdout)
	return q.printTable(rows)
}

// showSame prints a property of task trackers, one line for all with the same.
func (q *query) showSame(title string, c *web.Cluster, of func(*web.Tracker) string) error {
	rows := [][]string{{title, "TRACKERS"}}
	row := make(map[string]int)
	for i := range c.Trackers {
		t := &c.Trackers[i]
		text := of(t)
		switch n := row[text]; {
		case text == "":
		case n == 0:
			row[text] = len(rows)
			rows = append(rows, []string{text, t.ID})
		default:
			rows[n][1] += ", " + t.ID
		}
	}
	if len(rows) == 1 {
		return nil
	}
	fmt.Fprintln(q.stdout)
	return q.printTable(rows)
}

// leaderText names the leader or, without one, the last leader.
func leaderText(c *web.Cluster) string {
	leader := fmt.Sprintf("%s at %s", client.OneLine(c.Leader), client.OneLine(c.Addr))
	switch {
	case c.IsLeader:
		return fmt.Sprintf("leader %s, epoch %d, %s", leader, c.Epoch, countText(c.Jobs, "unfinished job"))
	case c.Leader == "":
		return "no leader; the job tracker that answered has never had one"
	}
	return fmt.Sprintf("no leader; the last leader was %s in epoch %d", leader, c.Epoch)
}

// minSkew is the smallest difference of clocks that mrsubmit prints.
const minSkew = 5 * time.Second

func trackerState(c *web.Cluster, t *web.Tracker) string {
	var parts []string
	if !t.Connected {
		parts = append(parts, "not connected, silent for "+elapsedText(t.SilentMillis))
	}
	if d := c.Drain(t.ID); d != nil {
		parts = append(parts, drainState(d))
	}
	if x := c.OperatorExclusion(t.ID); x != nil {
		parts = append(parts, exclusionState(x, c.Wall))
	}
	if x := c.LeaderExclusion(t.ID); x != nil {
		parts = append(parts, exclusionState(x, c.Wall))
	}
	if t.Trouble != "" {
		parts = append(parts, t.Trouble)
	}
	if len(parts) == 0 {
		return "good"
	}
	return strings.Join(parts, "; ")
}

// lostState describes since when a tracker is lost, and which attempts and map outputs it had.
func lostState(t *web.LostTracker, now time.Time) string {
	var ran, parts []string
	if t.Maps > 0 {
		ran = append(ran, countText(t.Maps, "map"))
	}
	if t.Reduces > 0 {
		ran = append(ran, countText(t.Reduces, "reduce"))
	}
	if len(ran) > 0 {
		parts = append(parts, "ran "+strings.Join(ran, " and "))
	}
	if t.Outputs > 0 {
		parts = append(parts, "had "+countText(t.Outputs, "map output"))
	}
	text := "lost"
	if t.Stopped {
		text = "stopped"
	}
	text += fmt.Sprintf(" since %s (%s)", timeText(t.Since), relativeTime(t.Since, now))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// countText formats a number with a noun, which is given in the singular.
func countText(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (q *query) removeVoter(ctx context.Context) error {
	if err := q.cluster.RemoveVoter(ctx, q.args[0]); err != nil {
		return err
	}
	return q.printChanged("removed", q.args...)
}

// printChanged prints with -json what a command has changed, as kill does.
func (q *query) printChanged(how string, names ...string) error {
	if !q.json {
		return nil
	}
	return q.printJSON(map[string][]string{how: append([]string{}, names...)})
}

// checkShared refuses local paths without -shared-local if task trackers are on several machines.
func checkShared(sub *wire.Submission, c *web.Cluster, shared bool) error {
	machines := make(map[string]bool)
	for i := range c.Trackers {
		host, _, err := net.SplitHostPort(c.Trackers[i].Addr)
		if ip := net.ParseIP(host); err != nil || ip != nil && ip.IsLoopback() || host == "localhost" {
			host = "localhost"
		}
		machines[host] = true
	}
	name := localName(sub)
	if shared || len(machines) < 2 || name == "" {
		return nil
	}
	return fmt.Errorf("%s is a local file on a cluster of several machines: if all %d machines share it, add -shared-local", name, len(machines))
}

// localName returns the first local file or directory of a submission.
func localName(sub *wire.Submission) string {
	isLocal := func(name string) bool {
		return name != "" && (strings.HasPrefix(name, "file://") || !strings.Contains(name, "://"))
	}
	for i := range sub.Plan.Jobs {
		j := &sub.Plan.Jobs[i]
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
	if step := sub.Program.Step; step != nil && isLocal(step.Output) {
		return step.Output
	}
	return ""
}

// openCluster makes a client for a cluster and checks that this machine can submit to it.
func (t *tool) openCluster(ctx context.Context, addrs []string, self *identity.Identity) (*web.Client, *web.Cluster, error) {
	c := web.NewClient(addrs)
	c.Secure(self.Dialer(identity.JobTracker))
	c.Note = func(line string) { fmt.Fprintln(t.stderr, client.Visible(line)) }
	status, err := c.Cluster(ctx)
	if err == nil {
		err = checkStaging(status)
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, status, nil
}

// checkStaging fails if this machine cannot read the cluster's staging directory. Then the trackers
// would not find what it stages there.
func checkStaging(status *web.Cluster) error {
	if status.Staging == "" {
		return errors.New("the cluster has no staging directory yet")
	}
	proof := dfs.Join(status.Staging, wire.StagingClusters, status.ID)
	if _, err := files().Stat(proof); err != nil {
		return fmt.Errorf("the cluster's staging directory %s is not shared with this machine: %w", status.Staging, err)
	}
	return nil
}

// ownStaging returns the directory below which this user stages. If it is the user's own, it makes the
// directory. In HDFS the user must have the same name as in the certificate: daemons act as that user.
func ownStaging(status *web.Cluster) (string, error) {
	if status.Own == "" {
		return status.Staging, nil
	}
	users := dfs.UsersOf(files(), status.Own)
	if users == nil {
		return "", fmt.Errorf("staging directory %s: its file system knows no users", status.Own)
	}
	if err := users.MakeOwn(status.Own); err != nil {
		return "", fmt.Errorf("make your staging directory: %w", err)
	}
	owner, err := users.Owner(status.Own)
	if want := dfs.ShortName(dfs.Base(status.Own)); err == nil && owner != want {
		_ = files().Remove(status.Own) // it was made just now, or it is not empty
		err = fmt.Errorf("make your staging directory %s: the cluster knows you as %s, and HDFS as %s: use one name, by HADOOP_USER_NAME or a Kerberos login", status.Own, want, owner)
	}
	return status.Own, err
}
