//go:build unix

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

// Run starts a cluster with the submission's properties, runs the submission with progress
// on standard error, and returns the exit code. It continues after the terminal is lost,
// because the job could not run without this process.
func Run(sub *wire.Submission, load runtime.Load) int {
	ctx, signals, stop := client.Interrupts(context.Background())
	defer stop()
	cfg, err := FromProperties(sub.Plan.Jobs[0].Properties, load)
	if err != nil {
		return printError(err)
	}
	cluster, err := Start(cfg)
	if err != nil {
		return printError(err)
	}
	if err := cluster.KeepProgram(sub); err != nil {
		return printError(errors.Join(err, cluster.Close()))
	}
	width := client.Terminal(os.Stderr)
	if cfg.Output {
		width = nil // a display that is drawn again would overwrite the attempts' lines
	}
	code, jobs := client.RunJobs(ctx, client.Config{
		Cluster: cluster,
		FS:      cluster.FS(),
		Staging: cluster.Staging(),
		Out:     os.Stderr,
		Width:   width,
		GiveUp:  signals.GiveUp,
	}, sub)
	if err := cluster.Close(); err != nil {
		return printError(err)
	}
	if code == 1 && jobs != nil {
		fmt.Fprint(os.Stderr, cfg.failureNote())
	}
	return code
}

// failureNote says after the failure of a job which properties show more.
func (cfg *Config) failureNote() string {
	switch {
	case cfg.Load != nil:
		return ""
	case cfg.Output:
		return "note: to use a debugger, add -D quern.task.inprocess=true\n"
	}
	return "note: to see what attempts print, add -D quern.embedded.output=true; to use a debugger, add -D quern.task.inprocess=true\n"
}

func printError(err error) int {
	fmt.Fprintf(os.Stderr, "error: %v\n", err)
	return 1
}

// FromProperties returns the configuration of a job's properties quern.embedded.* and
// quern.task.inprocess. Load is for [Config.Load]; nil: this process is not the job's program.
func FromProperties(properties map[string]string, load runtime.Load) (Config, error) {
	profiled := properties["mapreduce.task.profile"] == "true"
	cfg := Config{Dir: properties["quern.embedded.dir"], Keep: profiled || properties["quern.embedded.keep"] == "true",
		Output: properties["quern.embedded.output"] == "true"}
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
		if profiled {
			return cfg, fmt.Errorf("property mapreduce.task.profile=true: the attempts share a process with quern.task.inprocess=true, so that none has a profile of its own; leave one of them out")
		}
		if load == nil {
			return cfg, fmt.Errorf("property quern.task.inprocess=true: this process is not the job's program; start the job by its own program")
		}
		cfg.Load = load
	}
	return cfg, nil
}
