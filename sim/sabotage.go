package sim

// sabotage switches off one rule of what surrounds the cores, to show that the
// absence is seen.
type sabotage string

const (
	keepStaging    sabotage = "staging directories are not removed"
	replaceTargets sabotage = "renames replace what is there, and fences do nothing"
	skipFences     sabotage = "fences do nothing and find nothing committed"
	commitUnasked  sabotage = "attempts commit without a grant"
	ignoreKills    sabotage = "killed workers live on"
	keepOrphans    sabotage = "workers outlive their tracker"
	skipChecksums  sabotage = "damaged files are read"
	hideDigests    sabotage = "all outputs of a map are said to have the same digest"
	boastSlots     sabotage = "trackers say that they have one slot more of each kind"
	keepJobs       sabotage = "trackers do not hear which jobs have ended"
	applyEarly     sabotage = "a leader takes for committed what it has only proposed"
	swapEntries    sabotage = "followers are given entries in another order"
	oldSnapshots   sabotage = "snapshots are older than they say"
	loseProposals  sabotage = "proposals get lost without a word"
)
