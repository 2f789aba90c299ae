package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Limits of what a status names.
const (
	maxNamedKeys       = 3
	maxNamedPartitions = 3
	minNamedKey        = 0.1 // of the bytes of a mean partition; a key with less delays no reduce
	minNamedPartition  = 2   // times the median
	minNamedBytes      = 1 << 20
)

// SkewTexts says which partitions and keys have much more than their part of a job's map output, as far as is known:
// a line each.
func SkewTexts(job *wire.JobStatus) (lines []string) {
	p := job.Partitions
	if p == nil || len(p.Largest) == 0 {
		return nil
	}
	if largest := p.Largest; p.Known > 1 && largest[0].Bytes >= minNamedBytes && float64(largest[0].Bytes) >= minNamedPartition*float64(max(p.Median, 1)) {
		var named []string
		for _, x := range largest[:min(len(largest), maxNamedPartitions)] {
			named = append(named, fmt.Sprintf("partition %d has %s", x.Partition, Size(x.Bytes)))
		}
		lines = append(lines, fmt.Sprintf("%s; the median is %s", strings.Join(named, ", "), Size(p.Median)))
	}
	mean := float64(p.Bytes) / float64(max(p.Total, 1))
	named := 0
	for _, k := range job.HotKeys {
		if named < maxNamedKeys && float64(k.Bytes) >= minNamedKey*mean {
			named++
			lines = append(lines, hotKeyText(&k, job))
		}
	}
	return lines
}

func hotKeyText(k *wire.HotKey, job *wire.JobStatus) string {
	name, records, soFar := "key", "records", ""
	if k.Raw {
		name = "the key with bytes"
	}
	if k.Combined {
		records = "combined records"
	}
	if !job.State.Ended() {
		soFar = "so far "
	}
	return fmt.Sprintf("%s \"%s\" %shas %s of the bytes of partition %d and %s of the job's: %s in %d %s",
		name, OneLine(k.Key), soFar, shareText(k.Bytes, k.Of), k.Partition, shareText(k.Bytes, job.Partitions.Bytes), Size(k.Bytes), k.Records, records)
}

// shareText prints a part of a whole. Both may grow at the same time, so it is at most 100.
func shareText(part, whole int64) string {
	return fmt.Sprintf("%.0f %%", min(100*float64(part)/float64(max(whole, 1)), 100))
}

// slotUses says what a use of slots is.
var slotUses = map[wire.SlotUse]string{
	wire.SlotStart: "start of attempts", wire.SlotRead: "reads of the input", wire.SlotMap: "maps", wire.SlotShuffle: "shuffle", wire.SlotReduce: "reduces",
	wire.SlotCommit: "commits", wire.SlotFailed: "failed", wire.SlotKilled: "killed", wire.SlotSpeculative: "outrun", wire.SlotRerun: "rerun",
	wire.SlotLost: "lost with trackers", wire.SlotGathering: "held while gathering", wire.SlotRunning: "running",
}

// SlotTimeText says what the slots of a job did, the largest part first; empty: it has had none.
func SlotTimeText(job *wire.JobStatus) string {
	t := job.SlotTime
	if t == nil || t.Total+t.Deferred == 0 {
		return ""
	}
	uses := slices.Clone(t.Uses)
	slices.SortStableFunc(uses, func(a, b wire.SlotTook) int { return int(min(max(b.Millis-a.Millis, -1), 1)) })
	var parts []string
	for _, u := range uses {
		name := slotUses[u.Use]
		if name == "" { // of a newer job tracker
			name = OneLine(string(u.Use))
		}
		if 200*u.Millis >= t.Total && u.Millis > 0 { // it rounds to 1 %
			parts = append(parts, fmt.Sprintf("%s %s", name, shareText(u.Millis, t.Total)))
		}
	}
	text := millis(t.Total)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if t.Deferred > 0 {
		text += fmt.Sprintf("; free slots left for local ones: %s", millis(t.Deferred))
	}
	return text
}

func millis(ms int64) string { return Duration(time.Duration(ms) * time.Millisecond) }
