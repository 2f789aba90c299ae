//go:build !linux

package process

import "github.com/quernmr/quern/tasktracker/core"

// meter cannot tell what a worker takes here: there are no limits.
type meter struct{}

func (*meter) limit(*process, core.Limit, func(string)) {}
func (*meter) leave(*process)                           {}

// LimitsInForce would list what held a worker when it ended for want of something.
func LimitsInForce(core.Limit) string { return "no limits but the machine's" }
