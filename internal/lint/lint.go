// Package lint holds the repository to its architecture, as tests: imports point
// downwards, cores and policies do no I/O and read no clock, job programs carry
// no cluster, comments, messages and pages use plain words, and a few habits. It has
// no code of its own, and no package imports it.
//
// A new package must be entered in the table of layers in layers_test.go. How many refused
// words and shapes each package still has is in testdata/ceilings.txt: numbers only fall.
package lint
