//go:build !linux

package program

func closeExecutable() {}
