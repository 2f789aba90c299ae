// Package runtime runs attempts inside the job's own binary. It computes and reads splits,
// runs the job's code as functions on bytes (a [Program]), and writes and commits output
// files. Package shuffle sorts and merges records for it. It handles only bytes:
// package mapreduce encodes the author's types. It talks to the tracker only in messages of
// package wire. The job tracker decides what runs, where, and how often.
//
// It shares its name with a standard package: import it as mrruntime if both are needed.
//
// # Invariants
//
//	I1  Exactly one map reads each record of the input, for all sizes of splits,
//	    blocks and records.
//	I2  An attempt of any kind may stop at any point; another attempt then
//	    completes the rest. See tree for how the output directory shows the state.
//	I3  Output appears once, and files of others are not overwritten or removed.
//	    A task commits by one rename, which fails if the target exists; a job
//	    commits by such renames of files.
//	I4  An input error is reported instead of the error of the job's code, which
//	    may follow from it. An error is reported even if the code ignores it.
//	I5  [Fatal] marks an error that would fail every attempt.
//
// # The course of an attempt
//
// [Serve] sends [wire.WorkerHello] and then runs one attempt per [wire.Run]. It enters the
// attempt's directory, loads the staged submission, rebuilds the job and compares the
// plans, does the work, and answers [wire.WorkerDone]. Meanwhile it sends
// [wire.WorkerProgress]. An attempt that writes output sends [wire.CommitReady] and renames
// its output after the grant. The kinds of attempts:
//
//	setup    checks input and output; stages splits, the list of side files, and
//	         cuts; makes the output's directories
//	map      reads a split and writes one segment file, <Dir>/output, for the
//	         reduces; in a map-only job, output files like a reduce
//	reduce   merges its sorted runs and writes output files
//	commit   moves committed tasks' files into place, then writes _SUCCESS
//	cleanup  removes the output of a failed or killed job; parents of the output
//	         directory that setup made stay
//	fence    renames a granted attempt's directory away, so that it cannot commit
//	         any more, and reports whether it has committed
//
// # Staged files
//
// Below the submission's staging URL (package wire has their names):
//
//	submission       frame of wire.Submission
//	stopped          the submission, renamed by the first cleanup of one of its jobs; see tree
//	tmp/<index>      output of a job of a flow that only later jobs read: segment files
//	<job>/splits     see splitsfile.go for the bytes
//	<job>/files      see sidefiles.go; only for a job with side files
//	<job>/cuts       see cuts.go
//
// Splits and cuts appear complete or not at all, and are never replaced: if a setup attempt
// is interrupted, the next one uses the existing files.
//
// # Concurrency
//
// An attempt's code runs on one goroutine. A second one sends progress and reads only
// atomics. [Task] documents its methods that are safe for concurrent use. When the stream
// to the tracker ends, the attempt's context is cancelled. Serve then returns without
// waiting for code that ignores this: a worker process exits.
package runtime
