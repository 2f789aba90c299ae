package mapreduce

import (
	"errors"
	"os"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/program"
)

// Main runs the program as a job or flow, and exits. It adds the flags -input,
// -output, -D and -h to the program's own, parses them, and calls build. It does so
// in every process, so the result of build must depend on the flags alone.
//
// A job writes to -output. In a flow, each job that no other job reads writes to a
// directory of its name below -output. Job.Output overrides both.
//
// The exit code is 0 if the job succeeds, 2 for bad usage, 1 otherwise.
func Main[P *Job | *Flow](build func() (P, error)) {
	os.Exit(program.Run(func() (bridge.Compiler, error) {
		p, err := build()
		if err != nil {
			return nil, err
		}
		if p == nil {
			return nil, errors.New("the function given to mapreduce.Main returned nil")
		}
		return any(p).(bridge.Compiler), nil
	}))
}
