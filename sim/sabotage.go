package sim

// sabotage switches off one rule of the models, to show that its absence is seen.
type sabotage string

const (
	keepStaging    sabotage = "staging directories are not removed"
	replaceTargets sabotage = "renames replace what is there"
	ignoreKills    sabotage = "killed workers live on"
	skipChecksums  sabotage = "damaged files are read"
	hideDigests    sabotage = "all outputs of a map are said to have the same digest"
)
