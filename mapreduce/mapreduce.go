// Package mapreduce is what the author of a job imports: jobs are Go functions
// over typed keys and values, which the compiler checks from the input to the
// output and between jobs.
//
// # A first job
//
// Five names are enough: [Main], [Lines], [Map], [Fold] and [Result.Job].
//
//	func main() { mapreduce.Main(wordcount) }
//
//	func wordcount() (*mapreduce.Job, error) {
//		words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
//			for w := range strings.FieldsSeq(line) {
//				emit(w, 1)
//			}
//			return nil
//		})
//		return mapreduce.Fold(words, mapreduce.Sum).Job("wordcount"), nil
//	}
//
// Run with -input and -output, the program starts a cluster of its own on this
// machine and works with all cores; mrsubmit run hands the same program to a
// cluster. Package mrtest tests a job in a few lines.
//
// # By task
//
//   - Read: [Lines], [KeyValues], [Records], [Files]; formats of one's own by
//     [NewInput] and [InputOf]; another job's result by [From]; several inputs by [Merge] or [Join].
//   - Map: [Map]; with setup and cleanup, [MapSplit]; without reduces, [MapOnly].
//   - Shrink map output: [Fold] does; else [Pairs.Combine], [Pairs.CombineGroup].
//   - Reduce: [Reduce]; to one value, [Fold]; with sorted values, [ReduceSorted];
//     with state across keys, [ReduceAll]; two kinds of values, [Join]; nothing but
//     the order, [Sort]. Three kinds are two joins.
//   - Choose partitions: [Pairs.Partition]; sorted across files, [Pairs.TotalOrder].
//   - Compose keys: [PairOf], [Descending], or a type with [Fields].
//   - Write: [Format]; more than one output, [Write].
//   - Know more: [Task] has counters, status, properties, side files.
//   - Several jobs: [Flow]. Settings: [Job] and [Properties].
//
// # Rules
//
//  1. The program runs again in every worker with the same flags; only the binary
//     and the flags' values travel, defaults as the client saw them. No closure is
//     serialised.
//  2. The function given to Main builds the job from the flags alone. It is called
//     for every attempt, so what the job's functions capture is per attempt. A
//     worker whose job differs from the submitted one stops and says where.
//  3. Package variables are per process: pass no data through them. Workers run in
//     another directory than the client, with the environment of their task tracker,
//     so a relative os.Open fails, also before Main; files come through Job.Files and
//     [Task.File], values through flags.
//  4. Declare flags before Main and leave flag.Parse to it. The flags -input,
//     -output, -D and -h are Main's; -D wins over Job.Properties, and -input that no
//     job reads is refused. Code behind Main does not run.
//  5. A map, fold or reduce may run several times, in part, or twice at once; only
//     emit, Write and counters count once. A combiner may run any number of times,
//     also never.
//  6. emit and Write return nothing: their first error is kept and fails the attempt
//     when the function returns. They are for one goroutine at a time, and not for
//     after the return.
//  7. The values of a key are read once, streaming, before the next key. break skips
//     the rest, and a second range goes on where the first stopped. A range after
//     the end, or of a key that is over, fails the job at once. If reading fails,
//     the loop ends and the attempt fails whatever is returned.
//  8. Strings may be kept (strings.Clone a small piece of a big one); []byte
//     records, keys and values are valid until the next one. What a combiner, a
//     fold or a Partition function is given is valid until it returns.
//  9. Setup and cleanup are what stands before and after the loop of MapSplit and
//     ReduceAll; defer works.
//  10. Join calls its function for every key on either side, and gives the left
//     values before the right ones: put the smaller side first.
//  11. Fields lists pointers to all of the receiver's fields, in every call, and does
//     nothing else: it serves encoding, decoding, text and hash. [Fields.Skip] names
//     a field that does not travel; one that is neither listed nor skipped is an
//     error before anything is submitted.
//  12. A type without encoding is an error before anything is submitted.
//  13. No order is promised among the values of a key, nor that a sum of
//     floating-point numbers is the same twice: add integers where output must be.
//
// # Types
//
// Keys and values are string, bool, the integers, the floats, []byte, struct{}
// (nothing), types named after these, [Pair], [Desc], and any T whose *T has a
// method Fields. Others need a [Codec]. Keys are sorted as Go orders them; false
// before true, pairs and fields from left to right. Of the floats, -0 and 0 are two
// keys in this order and NaN is one, the last, as in Hadoop.
//
// Text prints numbers as Java does (100.0, 1.0E10, NaN, Infinity), so that part
// files can be compared with Hadoop's; []byte as it is; the parts of pairs and the
// fields of types with tabs between them; nothing, not even its tab, for struct{}.
//
// A key's partition is that of Hadoop's HashPartitioner, (hash & 0x7fffffff) mod
// reduces, with the hash of Hadoop's type:
//
//	string, []byte   Text, BytesWritable   31·h + byte, signed, from 1
//	integers         LongWritable, …       the value's low 32 bits
//	floats           DoubleWritable, …     the bits', low 32 of 64
//	bool             BooleanWritable       true 0, false 1
//	struct{}         NullWritable          0
//	Pair, Fields     (ours)                31·h + next part, from 0
//	Desc             (ours)                its element's
//
// # Inside
//
// This package compiles typed functions to functions on bytes, which package
// runtime runs; it schedules and moves nothing itself. Keys are encoded so that
// the order of bytes is the order of keys, drawn beside the codecs in
// codec_kinds.go; the same encoding serves values and Binary files. Nothing is
// reflected on for a record. A job may be compiled and run by several goroutines
// at once, if the author's own functions allow it; building one is for one.
//
// Where to look, in the order in which things happen:
//
//	how a job is described         input.go, pairs.go, reduce.go, join.go, format.go, job.go
//	what all kinds of jobs have    stage.go
//	flags, modes of the process    internal/program; main.go leads there
//	properties                     internal/property: names, defaults, values, Hadoop's names;
//	                               properties.go: whose value a job of a flow has
//	in which order jobs run        joborder.go
//	what is in a job's plan        plan.go: reduces, inputs, output, side files
//	what is refused                check.go: names and outputs of jobs;
//	                               Pairs.check, Result.check, checkFormat: types and use;
//	                               fields_examine.go: fields that a type leaves out
//	functions on bytes             compile.go
//	an attempt, Write, misuse      task.go
//	records that a map emits       foldtable.go, then collect.go, which picks the partition;
//	                               combine.go, when they are sorted
//	records that a reduce reads    group.go
//	encodings, hashes, text        codec.go, codec_kinds.go, pair.go, fields.go;
//	                               internal/javatext: floats
package mapreduce
