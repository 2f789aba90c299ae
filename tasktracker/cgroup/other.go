//go:build !linux

package cgroup

import (
	"syscall"
	"time"
)

// Groups exist only on Linux.
type (
	Groups struct{}
	Group  struct{}
	system struct{}
)

// Open makes no groups on this system.
func Open(Config) (*Groups, Found) { return nil, Found{Missing: "this system has none"} }

// Own returns no limits on this system.
func Own() Inherited { return Inherited{} }

// RemoveLeftover does nothing on this system.
func RemoveLeftover(string, time.Duration) error { return nil }

// The methods do nothing on this system.
func (*Groups) Add() *Group                   { return nil }
func (*Groups) Close() error                  { return nil }
func (*Group) Prepare(*syscall.SysProcAttr)   {}
func (*Group) Started()                       {}
func (*Group) Limit(int, Limits) error        { return nil }
func (*Group) Exhausted() Exhausted           { return Exhausted{} }
func (*Group) Members() (list []int, ok bool) { return nil, false }
func (*Group) Whole() bool                    { return false }
func (*Group) Kill()                          {}
func (*Group) Remove()                        {}
