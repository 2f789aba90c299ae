//go:build !linux

package tasktracker

import "github.com/quernmr/quern/tasktracker/core"

// meter cannot tell what a worker takes here: there are no limits.
type meter struct{}

func (*meter) limit(*process, core.Limit, func(string)) {}
func (*meter) leave(*process)                           {}

func limitsInForce(core.Limit) string { return "no limits but the machine's" }
