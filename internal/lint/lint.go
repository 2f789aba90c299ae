// Package lint holds the repository to its architecture, as tests: imports point
// downwards, cores and policies do no I/O and read no clock, job programs carry
// no cluster, and a few habits. It has no code of its own and is imported by
// nobody.
//
// A new package must be entered in the table of layers in layers_test.go.
package lint
