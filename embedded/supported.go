//go:build unix

package embedded

// Supported returns an error where [Start] cannot run a cluster.
func Supported() error { return nil }
