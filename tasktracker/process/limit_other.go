//go:build !linux

package process

import "github.com/quernmr/quern/tasktracker/core"

// meter cannot measure workers on this system: there are no limits.
type meter struct{}

func (*meter) limit(*process, core.Limit, func(string)) {}
func (*meter) forget(*process)                          {}

// LimitsInForce lists no limits on this system.
func LimitsInForce(core.Limit) string { return "no limits but the machine's" }
