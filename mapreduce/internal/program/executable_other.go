//go:build !linux

package program

func closeExecutable() {}

func adoptOrphans() {}
