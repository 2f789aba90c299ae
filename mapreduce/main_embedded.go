package mapreduce

import (
	"github.com/quernmr/quern/embedded"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// runEmbedded runs a submission on a cluster within this process and gives the
// program's exit code. Load makes the submission's program, for attempts that are
// to run in this process too.
func runEmbedded(sub *wire.Submission, load mrruntime.Load) int { return embedded.Run(sub, load) }
