// Package lint checks the architecture of the repository with tests: imports point
// downwards, cores and policies do no I/O and read no clock, job programs contain no
// cluster, and a few habits. It has no code besides tests, and no package imports it.
//
// A new package must be entered in the table of layers in layers_test.go.
package lint
