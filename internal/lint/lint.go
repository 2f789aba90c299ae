// Package lint has tests that check the repository's rules. Imports point downwards. Cores
// and policies do no I/O and read no clock. Job programs do not contain a cluster. Comments,
// messages and pages use plain words. It has no other code, and no package imports it.
//
// Enter a new package in the table of layers in layers_test.go.
package lint
