package sim

// sabotage switches off one rule of the models around the cores. Tests show that the checks
// notice it.
type sabotage string

const (
	keepStaging     sabotage = "staging directories are not removed"
	replaceTargets  sabotage = "renames replace their target, and fences do nothing"
	skipFences      sabotage = "fences do nothing and find nothing committed"
	commitUngranted sabotage = "attempts commit without a grant"
	ignoreKills     sabotage = "killed workers live on"
	keepOrphans     sabotage = "workers outlive their tracker"
	skipChecksums   sabotage = "damaged files are read"
	hideDigests     sabotage = "all outputs of a map report the same digest"
	announceSlots   sabotage = "trackers announce one slot too many of each kind"
	announceRoom    sabotage = "trackers announce more memory than they offer"
	keepJobs        sabotage = "trackers are not told which jobs have ended"
	applyEarly      sabotage = "a leader treats its proposals as committed"
	swapEntries     sabotage = "followers get entries in another order"
	oldSnapshots    sabotage = "snapshots are older than their index"
	loseProposals   sabotage = "proposals are lost silently"
)
