package core

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/wire"
)

func shortID(id wire.AttemptID) string {
	return fmt.Sprintf("%d.%c%d.%d", id.Task.Job.N, "?smrcxf"[id.Task.Kind], id.Task.N, id.N)
}

// render formats a command for the output of a scenario.
func render(c Command) string {
	switch c := c.(type) {
	case Send:
		return "leader: " + renderMessage(c.Message)
	case Hangup:
		if c.NeedsAdmin {
			return "hang up, needs administrator: " + c.Reason
		}
		return "hang up: " + c.Reason
	case ReadNonce:
		return "read nonce in " + c.File
	case StoreCluster:
		return "store cluster " + c.Cluster
	case StoreStaging:
		return "store staging " + c.Staging
	case Leave:
		return "leave"
	case Quit:
		return "quit: " + c.Reason
	case StartWorker:
		return fmt.Sprintf("start worker %d of %s in %s", c.Worker, c.Staging, c.Dir)
	case SendWorker:
		return fmt.Sprintf("worker %d: %s", c.Worker, renderMessage(c.Message))
	case Limit:
		text := fmt.Sprintf("limit worker %d for a %v: %d bytes, %d processes", c.Worker, c.Kind, c.Memory, c.Processes)
		if c.Cores > 0 {
			text += fmt.Sprintf(", %d cores", c.Cores)
		}
		return text
	case Record:
		return fmt.Sprintf("record%s in %s", renderReports([]wire.Report{*c.Report}), c.File)
	case Probe:
		return fmt.Sprintf("probe disk %d: %s", c.Disk, c.Path)
	case KillWorker:
		return fmt.Sprintf("kill worker %d", c.Worker)
	case StopWorker:
		if c.Dump {
			return fmt.Sprintf("stop worker %d after a dump", c.Worker)
		}
		return fmt.Sprintf("stop worker %d", c.Worker)
	case ReadLog:
		kind := "log"
		if c.Crashed {
			kind = fmt.Sprintf("log of a crash (%d bytes, %d processes)", c.Limit.Memory, c.Limit.Processes)
		}
		text := fmt.Sprintf("read %s of %s: %s", kind, shortID(c.Attempt), strings.Join(c.Files, " "))
		if c.Position != "" {
			text += ", and " + c.Position
		}
		for _, d := range c.NoSpace {
			text += fmt.Sprintf(", is disk %d full: %s", d.Disk, d.Path)
		}
		return text
	case Fetch:
		if c.InPlace {
			return fmt.Sprintf("look up %d: partition %d in %s", c.Fetch, c.Partition, c.File)
		}
		return fmt.Sprintf("fetch %d: map %d attempt %d partition %d at %s to %s",
			c.Fetch, c.Output.Map, c.Output.Attempt, c.Partition, c.Output.Addr, c.File)
	case FetchBatch:
		text := fmt.Sprintf("fetch %d: maps", c.Fetch)
		for _, o := range c.Outputs {
			text += fmt.Sprintf(" %d.%d", o.Map, o.Attempt)
		}
		text += fmt.Sprintf(" partitions %v at %s to %s", c.Partitions, c.Outputs[0].Addr, c.File)
		if c.Local != nil {
			text += ", from " + strings.Join(c.Local, " ")
		}
		return text
	case Share:
		var b strings.Builder
		for _, s := range c.Shares {
			fmt.Fprintf(&b, " job %d: %v", s.Job.N, s.Share)
		}
		return "share" + b.String()
	case CancelFetch:
		return fmt.Sprintf("cancel fetch %d", c.Fetch)
	case Merge:
		return fmt.Sprintf("merge %d: %s to %s", c.Merge, renderRuns(c.Runs), c.File)
	case CancelMerge:
		return fmt.Sprintf("cancel merge %d", c.Merge)
	case Remove:
		return "remove " + c.Path
	case AttemptEnded:
		return "" // the report has the same
	case RemoveProgram:
		return "remove program " + c.Staging
	}
	return fmt.Sprintf("%T", c)
}

func renderRuns(runs []wire.Segment) string {
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.File[strings.LastIndexByte(r.File[:max(0, strings.LastIndexByte(r.File, '/'))], '/')+1:]
	}
	return "[" + strings.Join(names, " ") + "]"
}

func renderMessage(m wire.Message) string {
	switch m := m.(type) {
	case *wire.Hello:
		s := fmt.Sprintf("hello %s process=%d incarnation=%d slots=%d+%d", m.Tracker, m.Process, m.Incarnation, m.MapSlots, m.ReduceSlots)
		if m.Nonce != "" {
			s += " nonce=" + m.Nonce
		}
		if m.DisksAbandoned > 0 {
			s += fmt.Sprintf(" disk-failures=%d", m.DisksAbandoned)
		}
		return s
	case *wire.Capacity:
		text := fmt.Sprintf("capacity %d+%d, disk failures %d: %s", m.MapSlots, m.ReduceSlots, m.DisksAbandoned, m.Reason)
		if m.Unhealthy != "" {
			text += "; unhealthy: " + m.Unhealthy
		}
		if m.Stops {
			text += "; it stops"
		}
		return text
	case *wire.NoStaging:
		return "no staging: " + m.Reason
	case *wire.Inventory:
		return fmt.Sprintf("inventory%s%s more=%v", renderReports(m.Attempts), renderHomes(m.Homes), m.More)
	case *wire.Heartbeat:
		text := "heartbeat" + renderReports(m.Attempts)
		if m.Rate > 0 {
			text += fmt.Sprintf(" rate=%.0f", m.Rate)
		}
		for _, a := range m.Awaited {
			text += fmt.Sprintf(" job%d awaits %v", a.Job.N, a.Trackers)
		}
		if x := m.Machine; x != nil {
			text += fmt.Sprintf(" load=%v failed-fetches=%d %+v", x.Load, x.FailedFetches, x.Disks)
		}
		return text
	case *wire.Report:
		return "report" + renderReports([]wire.Report{*m})
	case *wire.HomeReport:
		return "home" + renderHomes([]wire.HomeReport{*m})
	case *wire.OutputLost:
		text := fmt.Sprintf("output lost: map %d attempt %d corrupt=%v: %s", m.Map, m.Attempt, m.Corrupt, m.Reason)
		if m.Unreachable {
			text += fmt.Sprintf(", unreachable, reached %v since", m.Reached)
		}
		return text
	case *wire.Run:
		s := fmt.Sprintf("run %s in %s", shortID(m.Attempt), m.Dir)
		if len(m.Runs) > 0 {
			s += " on " + renderRuns(m.Runs)
		}
		return s
	}
	return fmt.Sprintf("%T", m)
}

func renderReports(reports []wire.Report) string {
	var b strings.Builder
	for _, r := range reports {
		fmt.Fprintf(&b, " (%s %v", shortID(r.Attempt), r.State)
		if r.Bytes.Done > 0 {
			fmt.Fprintf(&b, " %d/%d", r.Bytes.Done, r.Bytes.Total)
		}
		if r.Digest > 0 {
			fmt.Fprintf(&b, " reads=%d", r.Digest)
		}
		if r.SkipChanges > 0 {
			fmt.Fprintf(&b, " skips=%d", r.SkipChanges)
		}
		b.WriteString(renderHot(r.Hot))
		if r.Result != nil {
			b.WriteString(renderHot(r.Result.Hot))
			if o := r.Result.Output; o != nil {
				fmt.Fprintf(&b, " output=%d@%s", o.Digest, o.Addr)
			}
			if r.Result.Started > 0 {
				fmt.Fprintf(&b, " started=%v", r.Result.Started)
			}
			if r.Result.Error != "" {
				fmt.Fprintf(&b, " %q", r.Result.Error)
			}
			if at := r.Result.Died; at != nil {
				fmt.Fprintf(&b, " at=%d skips=%d reads=%d", at.Record, at.Changes, at.Digest)
			}
			if r.Result.Log != "" {
				fmt.Fprintf(&b, " log=%q", r.Result.Log)
			}
		}
		b.WriteByte(')')
	}
	return b.String()
}

// renderHot shows hot groups as args.hot reads them, with their records.
func renderHot(h *wire.Hot) string {
	if h == nil {
		return ""
	}
	text := fmt.Sprintf(" hot of %d:", h.Read>>10)
	for _, g := range h.Groups {
		text += fmt.Sprintf(" %s:%d/%d", g.Key, g.Bytes>>10, g.Records)
	}
	return text
}

func renderHomes(homes []wire.HomeReport) string {
	var b strings.Builder
	for _, h := range homes {
		fmt.Fprintf(&b, " (job %d partition %d gen %d.%d: %d maps, digest %d, %d bytes", h.Job.N, h.Partition,
			h.Generation.Epoch, h.Generation.N, h.Maps, h.Digest, h.Bytes)
		if h.Complete {
			b.WriteString(", complete")
		}
		b.WriteString(renderHot(h.Hot))
		b.WriteByte(')')
	}
	return b.String()
}
