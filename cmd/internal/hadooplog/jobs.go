package hadooplog

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/wire"
)

// unknown stands for what a job of Quern does not have.
const unknown = "N/A"

// Jobs writes the list of mapred job -list. Containers are running tasks.
func Jobs(w io.Writer, jobs []wire.JobStatus) error {
	const row = "%23v\t%40s\t%10s\t%14v\t%12s\t%12s\t%10s\t%15v\t%15v\t%8s\t%8s\t%10s\t%10s\n"
	var b strings.Builder
	fmt.Fprintf(&b, "Total jobs:%d\n", len(jobs))
	fmt.Fprintf(&b, row, "JobId", "JobName", "State", "StartTime", "UserName", "Queue", "Priority", "UsedContainers", "RsvdContainers", "UsedMem", "RsvdMem", "NeededMem", "AM info")
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintf(&b, row, j.ID, client.OneLine(j.Name), jobState(j.State), j.Submitted, client.OneLine(j.Owner), pool(j), j.Settings.Priority,
			j.Maps.Running+j.Reduces.Running, 0, unknown, unknown, unknown, unknown)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func pool(j *wire.JobStatus) string { return client.OneLine(cmp.Or(j.Settings.Pool, wire.DefaultPool)) }

// jobState is a state of Hadoop's jobs.
func jobState(s wire.State) string {
	switch s {
	case wire.Succeeded, wire.Failed, wire.Killed:
		return strings.ToUpper(s.String())
	case wire.Waiting, wire.Preparing:
		return "PREP"
	}
	return "RUNNING"
}

// Status writes what mapred job -status prints.
func Status(w io.Writer, j *wire.JobStatus) error {
	maps, reduces := client.Progress(j)
	var b strings.Builder
	fmt.Fprintf(&b, "\nJob: %v\nJob File: %s\nJob Tracking URL : %s\nUber job : false\nNumber of maps: %d\nNumber of reduces: %d\n", j.ID, unknown, unknown, j.Maps.Total, j.Reduces.Total)
	fmt.Fprintf(&b, "map() completion: %s\nreduce() completion: %s\nJob state: %s\nretired: false\nreason for failure: %s\n", share(maps), share(reduces), jobState(j.State), client.Visible(j.Error))
	_ = client.PrintExactCounters(&b, j.Counters) // a Builder takes everything
	_, err := io.WriteString(w, b.String()+"\n")
	return err
}

// share is a percentage as Java prints it as a float between 0 and 1.
func share(percent int) string {
	text := strings.TrimRight(fmt.Sprintf("%.2f", float64(percent)/100), "0")
	if strings.HasSuffix(text, ".") {
		text += "0"
	}
	return text
}

// History writes what mapred job -history prints about an ended job: its times, counters and failed attempts.
func History(w io.Writer, j *wire.JobStatus, failed []Attempt) error {
	var b strings.Builder
	began := time.UnixMilli(j.Submitted)
	const date = "2-Jan-2006 15:04:05"
	fmt.Fprintf(&b, "\nHadoop job: %v\n=====================================\n", j.ID)
	fmt.Fprintf(&b, "User: %s\nJobName: %s\nSubmitted At: %s\nFinished At: %s (%s)\nStatus: %s\n", client.OneLine(j.Owner), client.OneLine(j.Name),
		began.Format(date), began.Add(j.Elapsed).Format(date), client.Duration(j.Elapsed), jobState(j.State))
	_ = client.PrintExactCounters(&b, j.Counters) // a Builder takes everything
	b.WriteString("=====================================\n")
	if len(failed) > 0 {
		fmt.Fprintf(&b, "\nFAILED attempts\nAttemptId\tFinishTime\tError\n====================================================\n")
	}
	for _, a := range failed {
		fmt.Fprintf(&b, "%v\t%s\t%s\n", a.ID, a.Ended.Format(date), client.Visible(a.Error))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Applications writes the list of yarn application -list. states are the asked ones, for the head.
func Applications(w io.Writer, states []string, jobs []wire.JobStatus) error {
	const row = "%30s\t%20s\t%20s\t%10s\t%10s\t%18s\t%18s\t%15s\t%35s\n"
	var b strings.Builder
	fmt.Fprintf(&b, "Total number of applications (application-types: [], states: [%s] and tags: []):%d\n", strings.Join(states, ", "), len(jobs))
	fmt.Fprintf(&b, row, "Application-Id", "Application-Name", "Application-Type", "User", "Queue", "State", "Final-State", "Progress", "Tracking-URL")
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintf(&b, row, Application(j.ID), client.OneLine(j.Name), "MAPREDUCE", client.OneLine(j.Owner), pool(j),
			ApplicationState(j.State), finalState(j.State), progress(j), unknown)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ApplicationState is the state of a job as an application of YARN.
func ApplicationState(s wire.State) string {
	switch s {
	case wire.Succeeded, wire.Failed:
		return "FINISHED"
	case wire.Killed:
		return "KILLED"
	case wire.Waiting:
		return "ACCEPTED"
	}
	return "RUNNING"
}

func finalState(s wire.State) string {
	if s.Ended() {
		return jobState(s)
	}
	return "UNDEFINED"
}

func progress(j *wire.JobStatus) string {
	maps, reduces := client.Progress(j)
	switch {
	case j.State.Ended():
		return "100%"
	case j.Reduces.Total == 0:
		return fmt.Sprintf("%d%%", maps)
	}
	return fmt.Sprintf("%d%%", (maps+reduces)/2)
}

// Report writes what yarn application -status prints.
func Report(w io.Writer, j *wire.JobStatus) error {
	var b strings.Builder
	finished := int64(0)
	if j.State.Ended() {
		finished = j.Submitted + j.Elapsed.Milliseconds()
	}
	b.WriteString("Application Report : \n")
	for _, line := range [][2]string{
		{"Application-Id", Application(j.ID)}, {"Application-Name", client.OneLine(j.Name)}, {"Application-Type", "MAPREDUCE"},
		{"User", client.OneLine(j.Owner)}, {"Queue", pool(j)}, {"Application Priority", j.Settings.Priority.String()},
		{"Start-Time", fmt.Sprint(j.Submitted)}, {"Finish-Time", fmt.Sprint(finished)}, {"Progress", progress(j)},
		{"State", ApplicationState(j.State)}, {"Final-State", finalState(j.State)}, {"Tracking-URL", unknown}, {"RPC Port", "-1"}, {"AM Host", unknown},
		{"Diagnostics", client.Visible(j.Error)},
	} {
		fmt.Fprintf(&b, "\t%s : %s\n", line[0], line[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Counter returns a counter by its group and name, also by older names of Hadoop's groups; 0 if there is none.
func Counter(counters wire.Counters, group, name string) int64 {
	switch group {
	case "org.apache.hadoop.mapred.Task$Counter":
		group = wire.TaskCounters
	case "org.apache.hadoop.mapred.JobInProgress$Counter":
		group = wire.JobCounters
	case "FileSystemCounters":
		group = wire.FileSystemCounters
	}
	for known, values := range counters {
		if full := wire.HadoopCounters(known).Title; known == group || full != "" && full == wire.HadoopCounters(group).Title {
			return values[name]
		}
	}
	return 0
}

// Node is a task tracker, as YARN describes a node.
type Node struct {
	ID, State, Addr string
	Containers      int
}

// Nodes writes the table of yarn node -list.
func Nodes(w io.Writer, nodes []Node) error {
	const form = "%16s\t%15s\t%17s\t%28v\n"
	fmt.Fprintf(w, "Total Nodes:%d\n", len(nodes))
	_, err := fmt.Fprintf(w, form, "Node-Id", "Node-State", "Node-Http-Address", "Number-of-Running-Containers")
	for _, n := range nodes {
		_, err = fmt.Fprintf(w, form, client.OneLine(n.ID), n.State, client.OneLine(n.Addr), n.Containers)
	}
	return err
}

// LogFile is a log of an attempt, which stands for a container.
type LogFile struct {
	Attempt, Tracker, Name string
	Modified               time.Time
	Size                   int64 // negative: not known
	Running                bool  // the attempt still writes it
}

// Copy writes a log between the lines that yarn logs prints around it.
func (l *LogFile) Copy(w io.Writer, content io.Reader) error {
	head, kind := fmt.Sprintf("Container: %s on %s", l.Attempt, client.OneLine(cmp.Or(l.Tracker, unknown))), "AGGREGATED"
	if l.Running {
		kind = "LOCAL"
	}
	fmt.Fprintf(w, "%s\nLogAggregationType: %s\n%s\nLogType:%s\nLogLastModifiedTime:%s\n", head, kind, strings.Repeat("=", len(head)), l.Name, l.Modified.Format("Mon Jan 02 15:04:05 -0700 2006"))
	if l.Size >= 0 {
		fmt.Fprintf(w, "LogLength:%d\n", l.Size)
	}
	fmt.Fprintln(w, "LogContents:")
	if _, err := io.Copy(w, content); err != nil {
		return err
	}
	end := "End of LogType:" + l.Name
	_, err := fmt.Fprintf(w, "\n%s\n%s\n\n", end, strings.Repeat("*", len(end)+50))
	return err
}
