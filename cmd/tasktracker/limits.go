package main

import (
	"flag"
	"runtime"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/tasktracker/cgroup"
)

// limitFlags defines the flags with the operator's maximum.
func (o *options) limitFlags(set *flag.FlagSet) {
	set.Func("max-memory", "`size` of the memory that the processes of an attempt of any job may have together, such as 4g (default no limit but the job's)", func(s string) (err error) {
		o.maximum.Memory, err = parseSize(s)
		return err
	})
	set.IntVar(&o.maximum.Processes, "max-processes", 0, "most `processes` of an attempt of any job (default no limit but the job's)")
	set.IntVar(&o.maximum.Cores, "max-cores", 0, "most `cores` that the processes of an attempt of any job may use together: needs control groups (default no limit)")
	set.BoolVar(&o.maximum.StrictCores, "strict-cores", false, "an attempt uses at most the cores that it requests with mapreduce.map.cpu.vcores, or else one: needs control groups (default: attempts share spare cores by their requests)")
}

func (o *options) checkLimits() error {
	if o.maximum.Processes < 0 || o.maximum.Cores < 0 {
		return daemon.Usagef("-max-processes and -max-cores must not be negative, got %d and %d", o.maximum.Processes, o.maximum.Cores)
	}
	return nil
}

// offer has the defaults of what a task tracker offers.
type offer struct {
	slots  int
	memory int64 // 0: slots alone count
	cores  int   // 0: slots alone count
}

// forDaemon is the most of a limited memory that is not offered.
const forDaemon = 256 << 20

// offerOf returns the defaults for this machine and the limits of the control group, such as a container's.
func offerOf(machine int, group cgroup.Inherited) offer {
	o := offer{slots: machine, memory: group.Memory - min(group.Memory/4, forDaemon)}
	if group.Cores > 0 && group.Cores < float64(machine) {
		o.cores = max(int(group.Cores), 1)
		o.slots = o.cores
	}
	return o
}

func defaultOffer() offer { return offerOf(runtime.NumCPU(), cgroup.Own()) }
