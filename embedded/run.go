package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Run starts a cluster as the submission's properties say, takes the submission
// through its life with progress on standard error, and returns the process's
// exit code. A terminal that goes is no reason to end: the cluster goes with this
// process, and with it the job.
func Run(sub *wire.Submission, load runtime.Load) int {
	ctx, signals, stop := client.Interrupts(context.Background())
	defer stop()
	cfg, err := FromProperties(sub.Plan.Jobs[0].Properties, load)
	if err != nil {
		return failed(err)
	}
	cluster, err := Start(cfg)
	if err != nil {
		return failed(err)
	}
	if err := cluster.Hold(sub); err != nil {
		return failed(errors.Join(err, cluster.Close()))
	}
	code := client.Run(ctx, client.Config{
		Cluster: cluster,
		FS:      cluster.FS(),
		Staging: cluster.Staging(),
		Out:     os.Stderr,
		Width:   client.Terminal(os.Stderr),
		GiveUp:  signals.GiveUp,
	}, sub)
	if err := cluster.Close(); err != nil {
		return failed(err)
	}
	return code
}

func failed(err error) int {
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	return 1
}

// FromProperties is the cluster that a job's quern.embedded.* properties ask for.
// Load serves attempts that are to run in this process; nil where this process is
// not the job's program.
func FromProperties(properties map[string]string, load runtime.Load) (Config, error) {
	cfg := Config{Dir: properties["quern.embedded.dir"]}
	for name, field := range map[string]*int{
		"quern.embedded.slots":    &cfg.Slots,
		"quern.embedded.trackers": &cfg.Trackers,
	} {
		if value := properties[name]; value != "" {
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 {
				return cfg, fmt.Errorf("property %s=%q: want a whole number", name, value)
			}
			*field = n
		}
	}
	if properties["quern.task.inprocess"] == "true" {
		if load == nil {
			return cfg, fmt.Errorf("property quern.task.inprocess=true: run the job's own program, it cannot run in this one")
		}
		cfg.Load = load
	}
	return cfg, nil
}
