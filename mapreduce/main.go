package mapreduce

import (
	"errors"
	"os"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/program"
)

// Main runs the program as a job or flow, and exits. It parses the program's
// flags, to which it adds -input, -output, -D and -h, and calls build, in every
// process anew: what build returns must follow from the flags alone.
//
// A job writes to -output; of a flow's jobs, those that no other job reads write
// to directories of their names there. A job whose Output is set writes there.
//
// The exit code is 0 when the job has succeeded, 2 for bad usage, else 1.
func Main[P *Job | *Flow](build func() (P, error)) {
	os.Exit(program.Run(func() (bridge.Compiler, error) {
		p, err := build()
		if err != nil {
			return nil, err
		}
		if p == nil {
			return nil, errors.New("the function given to mapreduce.Main built nothing")
		}
		return any(p).(bridge.Compiler), nil
	}))
}
