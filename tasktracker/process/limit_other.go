//go:build !linux

package process

// meter cannot measure workers on this system: there are no limits.
type meter struct{}

func (*meter) limit(*process, Limits, func(string)) {}
func (*meter) forget(*process)                      {}

// LimitsInForce lists no limits on this system.
func LimitsInForce(Limits) string { return "no limits but the machine's" }

func limitTasks(int, int) {}
