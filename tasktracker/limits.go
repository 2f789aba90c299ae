package tasktracker

import (
	"fmt"

	"github.com/quernmr/quern/tasktracker/cgroup"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/process"
)

// limiter is a workers.Starter that can limit its workers by control groups.
type limiter interface {
	OpenGroups() (cgroup.Found, error)
}

// openGroups makes control groups, and returns what limits attempts. Without groups, measurements limit
// memory and processes.
func (cfg *Config) openGroups() (limits string, err error) {
	starter, ok := cfg.Workers.(limiter)
	if !ok {
		return "", nil
	}
	found, err := starter.OpenGroups()
	if err != nil {
		return "", err
	}
	cfg.Logger.Info("limits of attempts", "by", found)
	if cfg.Embedded {
		return "", nil
	}
	return found.String(), nil
}

// limitsInForce lists the limits of an attempt, for its error.
func (cfg *Config) limitsInForce(job core.Limit) string {
	return process.LimitsInForce(cfg.Maximum.Of(job))
}

// checkMaximum refuses limits that are no numbers of something.
func checkMaximum(m *process.Maximum) error {
	if m.Memory < 0 || m.Processes < 0 || m.Cores < 0 {
		return fmt.Errorf("limits of attempts must not be negative, got %d bytes, %d processes and %d cores", m.Memory, m.Processes, m.Cores)
	}
	return nil
}
