// Package runtime runs attempts inside the job's own binary: it computes splits,
// reads them, runs the job's code as functions on bytes (a [Program]), collects
// and merges through package shuffle, writes output files and commits them. It
// knows nothing of the author's types, which package mapreduce turns into bytes,
// and nothing of trackers but the messages of package wire; it decides neither
// what runs nor where, nor how often something is tried.
//
// It shares its name with a standard package: import it as mrruntime where both
// are meant.
//
// # Invariants
//
//	I1  Every record of the input is read by exactly one map, whatever the sizes
//	    of splits, blocks and records.
//	I2  Every kind of attempt may be cut off at any point; another attempt then
//	    does what is left. See tree for how the output directory tells.
//	I3  Output appears once and nothing of others is overwritten or removed: a
//	    task's output by one rename that is refused when the target is there, a
//	    job's by renames of files that are refused alike.
//	I4  An error of what the job's code was fed wins over the code's own, which
//	    may only follow from it; no error is lost because the code ignores it.
//	I5  An error that another attempt would meet alike is marked by [Fatal].
//
// # An attempt's life
//
// [Serve] tells [wire.WorkerHello] and then runs, one at a time, what [wire.Run]
// asks for: it enters the attempt's directory, loads the staged submission,
// builds the job again and compares the plans, does the work, and answers
// [wire.WorkerDone]. Meanwhile it sends [wire.WorkerProgress]. An attempt that
// writes output asks by [wire.CommitReady] and renames when it is granted. What
// the kinds do:
//
//	setup    checks input and output, stages splits, the list of side files and
//	         cuts, makes the output's directories
//	map      reads a split and writes one segment file, <Dir>/output, for the
//	         reduces; in a map-only job output files like a reduce
//	reduce   merges the runs it is given and writes output files
//	commit   moves committed tasks' files into place, then writes _SUCCESS
//	cleanup  removes what is left of a failed or killed job's output; parents of
//	         the output directory that setup had to make stay
//	fence    renames a granted attempt's directory away, so that it cannot
//	         commit any more, and tells whether it has
//
// # Staged files
//
// Below the submission's staging URL, see package wire for their names:
//
//	submission       frame of wire.Submission
//	stopped          its name from the first cleanup of one of its jobs on, see tree
//	tmp/<index>      output of a job of a flow that only later jobs read: segment files
//	<job>/splits     see splitsfile.go for the bytes
//	<job>/files      see sidefiles.go; of a job with side files
//	<job>/cuts       see cuts.go
//
// Splits and cuts appear complete or not at all, and are never replaced: a setup
// attempt after one that was cut off takes what it finds.
//
// # Concurrency
//
// An attempt's code runs on one goroutine; a second one sends progress and reads
// atomics only. [Task] says which of its methods may be called from several. When
// the stream to the tracker ends, the attempt's context is cancelled and Serve
// returns without waiting for code that does not heed it: a worker process exits
// then.
package runtime
