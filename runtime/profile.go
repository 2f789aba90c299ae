package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/wire"
)

// ProfileName is the name of an attempt's CPU profile in its working directory, for go tool pprof. The task
// tracker moves it beside the attempt's logs.
const ProfileName = "cpu.pprof"

// startProfile starts the CPU profile of an attempt, if the job asks for one of its task. Call stop at the attempt's end.
func (a *attempt) startProfile() (stop func() error, err error) {
	none := func() error { return nil }
	properties, tasks := a.plan().Properties, Profile+".maps"
	if a.id().Task.Kind == wire.Reduce {
		tasks = Profile + ".reduces"
	}
	ranges, err := wire.ParseTaskRanges(properties[tasks])
	if err != nil {
		return nil, Fatal(fmt.Errorf("property %s: %w", tasks, err))
	}
	if properties[Profile] != "true" || !ranges.Has(a.id().Task.N) || !a.id().Task.Kind.Slotted() {
		return none, nil
	}
	if a.worker.opts.Profile == nil {
		return nil, Fatal(fmt.Errorf("property %s=true: the attempts share a process, so that none has a profile of its own; leave out quern.task.inprocess", Profile))
	}
	file, err := os.Create(filepath.Join(a.task.work, ProfileName))
	var end func()
	if err == nil {
		end, err = a.worker.opts.Profile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("profile the attempt: %w", errors.Join(err, file.Close()))
	}
	return func() error {
		end()
		if err := file.Close(); err != nil {
			return fmt.Errorf("profile the attempt: %w", err)
		}
		return nil
	}, nil
}
