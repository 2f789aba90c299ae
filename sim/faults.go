package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Fault is one fault: at a time and for a while or, with a rate, at random during the storm.
type Fault struct {
	Kind Kind
	Node string // node with the fault; empty: any
	Peer string // the other end of a cut
	Disk string // of the node
	At   time.Duration
	For  time.Duration
	Rate float64

	Job    int     // of SickJob
	Factor float64 // how many times slower
}

// Kind is the kind of a fault.
type Kind string

// Faults at a time.
const (
	Cut        Kind = "cut the stream of"
	Crash      Kind = "crash"
	CrashAll   Kind = "crash all job trackers"
	Pause      Kind = "stop"
	Isolate    Kind = "cut off"
	Partition  Kind = "cut"       // both directions between Node and Peer
	OneWay     Kind = "cut a way" // from Node to Peer
	CutPeers   Kind = "cut from the other job trackers"
	Transfer   Kind = "transfer leadership"
	Damage     Kind = "damage files of"
	Lose       Kind = "lose files of"
	KillWorker Kind = "kill a worker of"
	BadDisk    Kind = "break a disk of"
	Drain      Kind = "drain"

	// All attempts, or a kind of them, fail on the tracker a tenth of a second after their
	// start.
	Sick        Kind = "fail every attempt of"
	SickMaps    Kind = "fail every map of"
	SickReduces Kind = "fail every reduce of"
)

// Faults with a rate.
const (
	SlowNet    Kind = "slow network"
	SlowFiles  Kind = "slow file system"
	Files      Kind = "failing calls to the file system, some of them done all the same"
	LateCalls  Kind = "calls to the file system done after their process has died"
	Effects    Kind = "failing effects of job trackers"
	Undecided  Kind = "proposals with unknown outcome"
	Refused    Kind = "refused connections"
	Attempts   Kind = "failing attempts"
	Hangs      Kind = "hanging attempts"
	Deaths     Kind = "dying workers"
	Starts     Kind = "workers that do not start"
	Leftovers  Kind = "workers that leave processes behind"
	Fetches    Kind = "failing fetches"
	Merges     Kind = "failing merges"
	Disks      Kind = "full disks"
	OverMemory Kind = "attempts that take more memory than they may"
	AtCommits  Kind = "crashes, cuts and elections when something is about to be committed"
)

func (f Fault) String() string {
	switch {
	case f.Rate > 0:
		return fmt.Sprintf("%s, %.0f%%", f.Kind, 100*f.Rate)
	case slices.Contains(refusals(), f.Kind):
		return strings.TrimSpace(fmt.Sprintf("%s %s", f.Kind, f.Node))
	}
	text := fmt.Sprintf("at %.1fs %s", f.At.Seconds(), f.Kind)
	if f.Node != "" {
		text += " " + f.Node
	}
	if f.Peer != "" {
		text += " and " + f.Peer
	}
	if f.Disk != "" {
		text += ": " + f.Disk
	}
	if f.Job > 0 {
		text += fmt.Sprintf(", job %d", f.Job)
	}
	if f.Factor > 0 {
		text += fmt.Sprintf(" by %v", f.Factor)
	}
	if f.For == lastingTime {
		text += " for good"
	} else if f.For > 0 {
		text += fmt.Sprintf(" for %.1fs", f.For.Seconds())
	}
	return text
}

// canFailAttempts reports whether a fault can make attempts fail for good, directly or through
// their input.
func (f Fault) canFailAttempts() bool {
	switch f.Kind {
	case Sick, SickMaps, SickReduces, Files, Effects, Attempts, Hangs, AtCommits, OverMemory, BadDisk, Deaths, Starts, Disks, KillWorker, Damage, Lose, Fetches, Cleanups, StagingWrites:
		return true
	}
	return false
}

// rates are the rates of faults.
type rates struct {
	slowNet, slowFiles, files, lateCalls, effects, undecided, refused                         float64
	attempts, hangs, deaths, starts, leftovers, fetches, merges, disks, atCommits, overMemory float64
}

func (r *rates) of(k Kind) *float64 {
	switch k {
	case SlowNet:
		return &r.slowNet
	case SlowFiles:
		return &r.slowFiles
	case Files:
		return &r.files
	case LateCalls:
		return &r.lateCalls
	case Effects:
		return &r.effects
	case Undecided:
		return &r.undecided
	case Refused:
		return &r.refused
	case Attempts:
		return &r.attempts
	case Hangs:
		return &r.hangs
	case Deaths:
		return &r.deaths
	case Starts:
		return &r.starts
	case Leftovers:
		return &r.leftovers
	case Fetches:
		return &r.fetches
	case Merges:
		return &r.merges
	case Disks:
		return &r.disks
	case AtCommits:
		return &r.atCommits
	case OverMemory:
		return &r.overMemory
	}
	return nil
}

// ratedFaults lists the faults with a rate, each with its highest rate.
func ratedFaults() []Fault {
	return []Fault{
		{Kind: SlowNet, Rate: 0.03}, {Kind: SlowFiles, Rate: 0.02}, {Kind: Files, Rate: 0.01}, {Kind: LateCalls, Rate: 0.7},
		{Kind: Effects, Rate: 0.1}, {Kind: Undecided, Rate: 0.1}, {Kind: Refused, Rate: 0.3}, {Kind: Attempts, Rate: 0.08},
		{Kind: Hangs, Rate: 0.01}, {Kind: Deaths, Rate: 0.06}, {Kind: Starts, Rate: 0.03}, {Kind: Leftovers, Rate: 0.1},
		{Kind: Fetches, Rate: 0.1}, {Kind: Merges, Rate: 0.2}, {Kind: Disks, Rate: 0.05},
		{Kind: AtCommits, Rate: 0.3}, {Kind: OverMemory, Rate: 0.2},
	}
}

// timedFaults lists the kinds with a time. A kind that is listed twice is drawn twice as often.
func timedFaults() []Kind {
	return []Kind{
		Cut, Cut, Cut, Crash, Crash, Crash, CrashAll, Pause, Pause, Isolate, Isolate, Partition, Partition,
		OneWay, CutPeers, CutPeers, Transfer, Transfer, Damage, Lose, KillWorker, BadDisk, BadDisk, Drain, Drain,
	}
}

const (
	jobTrackers  = 3
	taskTrackers = 4 // at most
)

func jobTrackerName(i int) string  { return fmt.Sprintf("j%d", i+1) }
func taskTrackerName(i int) string { return fmt.Sprintf("t%d", i+1) }

// drawFaults draws the faults of a seed: a storm, and sometimes an effect that fails for good or a
// sick tracker.
func drawFaults(seed uint64) []Fault {
	faults, rnd := append(drawStorm(seed), drawRefusals(seed)...), rand.New(rand.NewPCG(seed, 7))
	if rnd.IntN(4) == 0 {
		faults = append(faults, Fault{
			Kind: sicknesses()[rnd.IntN(len(sicknesses()))], Node: taskTrackerName(rnd.IntN(taskTrackers)),
			At: time.Duration(rnd.Int64N(int64(stormTime / 2))), For: time.Duration(rnd.Int64N(int64(stormTime))),
		})
	}
	return faults
}

func sicknesses() []Kind { return []Kind{Sick, SickMaps, SickReduces} }

func (f Fault) isSickness() bool { return slices.Contains(sicknesses(), f.Kind) }

// drawStorm draws all other faults. Each seed has its own mix of kinds, so that some runs have
// many faults of one kind only.
func drawStorm(seed uint64) []Fault {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var faults []Fault
	for _, f := range ratedFaults() {
		if rnd.IntN(3) == 0 {
			f.Rate *= 0.1 + 0.9*rnd.Float64()
			faults = append(faults, f)
		}
	}
	if rnd.IntN(8) == 0 {
		return faults
	}
	var kinds []Kind
	for _, k := range timedFaults() {
		if rnd.IntN(3) > 0 {
			kinds = append(kinds, k)
		}
	}
	for range rnd.IntN(40) {
		if len(kinds) > 0 {
			faults = append(faults, drawFault(rnd, kinds[rnd.IntN(len(kinds))]))
		}
	}
	return faults
}

func drawFault(rnd *rand.Rand, k Kind) Fault {
	f := Fault{Kind: k, At: time.Duration(rnd.Int64N(int64(stormTime * 3 / 4)))}
	job, task := jobTrackerName(rnd.IntN(jobTrackers)), taskTrackerName(rnd.IntN(taskTrackers))
	node := task
	if rnd.IntN(2) == 0 {
		node = job
	}
	f.For = time.Duration(rnd.ExpFloat64()*3000)*time.Millisecond + 10*time.Millisecond
	f.For = min(f.For, 20*time.Second)
	switch k {
	case Cut, Damage, Lose, KillWorker:
		f.Node, f.For = task, 0
	case Crash, Pause, Isolate:
		f.Node = node
	case Drain:
		f.Node, f.For = task, 2*f.For
	case BadDisk:
		f.Node, f.Disk = task, disks()[rnd.IntN(len(disks()))]
	case Partition, OneWay:
		f.Node, f.Peer = node, jobTrackerName(rnd.IntN(jobTrackers))
		if rnd.IntN(2) == 0 {
			f.Peer = taskTrackerName(rnd.IntN(taskTrackers))
		}
		if k == OneWay && rnd.IntN(2) == 0 {
			f.Node, f.Peer = f.Peer, f.Node
		}
	case CutPeers:
		f.Node = job
	case Transfer:
		f.For = 0
	}
	return f
}

// schedule schedules a fault, or sets its rate.
func (w *world) schedule(f Fault) {
	if rate := w.rates.of(f.Kind); rate != nil {
		*rate = f.Rate
		w.note("fault: %v", f)
		return
	}
	if slices.Contains(refusals(), f.Kind) {
		w.refuse(f)
		return
	}
	w.after(f.At, func() { w.strike(f) })
}

func (w *world) strike(f Fault) {
	w.note("fault: %v", f)
	n := w.nodes[f.Node]
	t, isTask := n.(*taskTracker)
	if f.Node != "" && n == nil {
		return // this cluster has fewer trackers
	}
	switch f.Kind {
	case Crash:
		n.crash(f.For)
	case Pause:
		n.pause(f.For)
	case CrashAll:
		for _, j := range w.jts {
			j.crash(f.For + w.upTo(time.Second))
		}
	case Transfer:
		w.raft.elect(w.raft.leader)
	case Isolate, CutPeers, CutTrackers, SplitTrackers, Partition, OneWay:
		w.separate(f)
	}
	if !isTask {
		return
	}
	switch f.Kind {
	case Cut:
		t.cut()
	case Damage, Lose:
		t.spoil(f.Kind == Damage)
	case KillWorker:
		t.killWorker()
	case BadDisk:
		t.breakDisk(f.Disk, f.For)
	case Drain:
		w.drain(t.name, f.For)
	case Sick, SickMaps, SickReduces:
		t.sickness = f.Kind
		w.after(f.For, func() { t.sickness = "" })
	default:
		t.strikeMachine(f)
		w.after(f.For, func() { t.machine = machine{} })
	}
}

// sickFor reports whether attempts at a task fail on the tracker now.
func (t *taskTracker) sickFor(id wire.TaskID) bool {
	return !t.w.calm && (t.sickness == Sick || t.sickness == SickMaps && id.Kind == wire.Map || t.sickness == SickReduces && id.Kind == wire.Reduce ||
		t.machine.sickJob == id.Job.N)
}

// separate cuts the network as a fault says, for its duration.
func (w *world) separate(f Fault) {
	for _, name := range sortedKeys(w.nodes) {
		_, isJob := w.nodes[name].(*jobTracker)
		switch {
		case name == f.Node, f.Peer != "" && name != f.Peer:
			continue
		case f.Kind == CutPeers && !isJob, f.Kind == CutTrackers && isJob, f.Kind == SplitTrackers && (isJob || w.split[name]):
			continue
		}
		heals := []func(){w.block(f.Node, name)}
		if f.Kind != OneWay {
			heals = append(heals, w.block(name, f.Node))
		}
		for _, heal := range heals {
			w.after(f.For, heal)
			w.heals = append(w.heals, heal)
		}
	}
}

// killWorker kills a random worker process, as another program would.
func (t *taskTracker) killWorker() {
	if ids := sortedKeys(t.workers); t.up && len(ids) > 0 {
		p := t.workers[ids[t.w.rnd.IntN(len(ids))]]
		p.exit("signal: killed")
	}
}

// strikeAtCommit may strike shortly after this moment, while something is being committed.
func (w *world) strikeAtCommit(t *taskTracker, p *worker) {
	if !w.fault(w.rates.atCommits) {
		return
	}
	w.after(w.upTo(30*time.Millisecond), func() {
		down := w.upTo(8 * time.Second)
		if w.calm {
			return
		}
		switch n := w.rnd.IntN(8); {
		case n == 0 && w.raft.leader != nil:
			w.raft.leader.crash(down)
		case n == 1 && w.raft.leader != nil:
			w.raft.leader.pause(down)
		case n == 2:
			w.raft.elect(w.raft.leader)
		case n == 3 && t != nil:
			t.crash(down)
		case n == 4 && t != nil:
			t.pause(down)
		case n == 5 && t != nil:
			t.cut()
		case n == 6 && t != nil:
			w.separate(Fault{Kind: Isolate, Node: t.name, For: down})
		case n == 7 && p != nil:
			p.exit("signal: killed")
		}
	})
}

// endStorm ends all faults: all processes run, and no faults occur any more.
func (w *world) endStorm() {
	w.note("calm")
	w.calm = true
	for _, heal := range w.heals {
		heal()
	}
	for _, t := range w.tts {
		t.machine = machine{}
	}
	for _, name := range sortedKeys(w.nodes) {
		w.nodes[name].revive()
	}
}
