// Package mapreduce is the API for authors of jobs. A job is Go functions over typed
// keys and values. The compiler checks the types from input to output and between jobs.
//
// # A first job
//
// Six names are enough: [Main], [Lines], [Map], [Words], [Fold] and [Result.Job].
//
//	func main() { mapreduce.Main(wordcount) }
//
//	func wordcount() (*mapreduce.Job, error) {
//		words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
//			for w := range mapreduce.Words(line) {
//				emit(w, 1)
//			}
//			return nil
//		})
//		return mapreduce.Fold(words, mapreduce.Sum).Job("wordcount"), nil
//	}
//
// Run the program with -input and -output: it starts a cluster inside its own process
// and uses all cores. The command mrsubmit run submits the same program to a cluster.
// Package mrtest tests a job in a few lines.
//
// # By task
//
//   - Read: [Lines], [KeyValues], [CSV], [JSONLines], [Records], [Files]; your own formats,
//     [NewInput], [NewFileInput] and [InputOf]; another job's result, [From]; no files,
//     [Generate]; several inputs, [Merge] or [Join].
//   - Map: [Map]; with setup and cleanup, [MapSplit]; without reduces, [MapOnly]. Words of a line: [Words].
//   - Shrink map output: [Pairs.Combine], [Pairs.CombineGroup]; [Fold] does it by itself.
//   - Reduce: [Reduce]; to one value, [Fold]; with sorted values, [ReduceSorted];
//     with state across keys, [ReduceAll]; two kinds of values, [Join] (for three, join
//     twice), [JoinEach]; in the maps, [BroadcastJoin]; only sort, [Sort].
//   - Largest values, [Top]; a part of the records, [Sample] and [Reservoir].
//   - Choose partitions: [Pairs.Partition]; sorted across files, [Pairs.TotalOrder].
//   - Compose keys: [PairOf], [Descending], structs, or a type with [Fields].
//   - Write: [Format], tables by [CSVOutput]; more than one output, [Write]; files named by records, [WriteBy].
//   - Counters, status, properties, side files, the place of a record: [Task].
//   - Several jobs: [Flow]. Jobs in a loop that looks at results: [Drive], [Define],
//     [Dataset]. Settings: [Job] and [Properties].
//
// # Rules
//
//  1. Every worker runs the program again with the same flags. Workers get only the
//     binary and the values of the flags, including the client's defaults. Closures are
//     not serialised.
//  2. The function given to Main builds the job from the flags alone. It runs for every
//     attempt, so each attempt has its own captured variables. If a worker's job differs
//     from the submitted one, the worker stops and names the difference.
//  3. Package variables are per process: pass no data through them. Workers run in
//     another directory than the client, with some variables of their task tracker's
//     environment. So os.Open fails for a relative name, even before Main. Pass files
//     through Job.Files and [Task.File], and values through flags.
//  4. Declare flags before Main, which calls flag.Parse. Main owns the flags -input,
//     -output, -D and -h. -D wins over Job.Properties. -input is refused if no job reads
//     it. Code after Main does not run.
//  5. A map, fold or reduce may run several times, even at the same time, and may stop
//     halfway. Only emit, Write and counters count once; other side effects may repeat. A
//     combiner may run any number of times, or never.
//  6. emit and Write return nothing. Their first error is kept, and fails the attempt
//     when the function returns. Call them from one goroutine at a time, and never after
//     the function has returned.
//  7. The values of a key are streamed: read them once, before the next key. After a
//     break, a second range continues where the first stopped; unread values are
//     skipped. A range after the end, or over an earlier key, fails the job at once. If
//     reading fails, the loop ends and the attempt fails, even if the function returns nil.
//  8. You may keep strings (strings.Clone a small piece of a big one). A []byte record,
//     key or value is valid until the next one is read. Arguments of a combiner, a fold
//     or a Partition function are valid until it returns.
//  9. In MapSplit and ReduceAll, code before the loop is setup and code after it is
//     cleanup; defer works.
//  10. Join calls its function for every key on either side. The left values come before
//     the right ones: put the smaller side first.
//  11. Fields lists pointers to all fields of its receiver, in every call, and does
//     nothing else. [Fields.Skip] excludes a field from the encoding. A field that is
//     neither listed nor skipped is an error before submission.
//  12. A type without encoding is an error before submission.
//  13. The order of a key's values is not defined. So sums of floating-point numbers may
//     differ between runs: add integers if the output must be the same.
//
// # Programs that drive jobs
//
// [Drive] takes a function that runs jobs, and definitions, from which workers build them:
//
//	func main() { mapreduce.Drive(drive, step) }
//
//	var step = mapreduce.Define("step", func(job *mapreduce.Job, p params) (*mapreduce.Result[string, node], error) { … })
//
//	next, err := step.Run(d, params{…})
//
// A definition is a value with the types of its parameters and of its result. Two other shapes are possible. If the
// struct of parameters had a method that builds the job, its name would also be the name of the definition, Drive would
// need an empty value of it, and tests could not make one from a closure; pagerank, drafted in both shapes, was as
// long. If Run took the name of a job, its result would have no type. With definitions, wrong types do not compile, and
// nothing is registered behind the program's back.
//
// # Types
//
// Keys and values are string, bool, the integers, the floats, []byte, struct{} (no
// data), time.Time, types defined from these, [Pair], [Desc], any type T if *T has a method
// Fields, and structs, slices, arrays, maps and pointers of these. A map is no part of a
// key. Other types need a [Codec].
//
// Fields of a struct are exported; the tag mapreduce:"-" leaves one out, and mapreduce:"desc"
// sorts one from high to low. An empty slice is decoded as nil, a nil map as an empty one, a time in UTC. Types
// that contain themselves are refused.
//
// Keys are sorted as Go orders them: false before true, pairs and fields from left to
// right. As in Hadoop, -0 sorts before 0, as a different key. All NaNs are one key, which
// sorts last.
//
// Text prints numbers as Java does (100.0, 1.0E10, NaN, Infinity), so that you can
// compare part files with Hadoop's. It prints []byte unchanged, and tabs between the
// parts of a pair and between fields. For struct{} it prints nothing, not even a tab. It
// prints what contains other values as JSON, [N]byte in hexadecimal, and times in RFC 3339.
//
// A key has the same partition as with Hadoop's HashPartitioner, (hash & 0x7fffffff) mod
// reduces, with the hash of Hadoop's type:
//
//	string, []byte   Text, BytesWritable   for each byte h = 31·h + signed byte; h is 1 at first
//	integers         LongWritable, …       low 32 bits of the value
//	floats           DoubleWritable, …     low 32 of the 64 bits
//	bool             BooleanWritable       true 0, false 1
//	struct{}         NullWritable          0
//	Pair, structs    (ours)                for each part h = 31·h + hash of the part; h is 0 at first
//	Desc             (ours)                hash of its element
//	others           (ours)                hash of the encoding, as of []byte
//
// # Inside
//
// This package compiles typed functions to functions on bytes, and package runtime runs
// them; it schedules nothing and moves no data. Keys are encoded so that the order of
// bytes is the order of keys: see codec_kinds.go. Values and Binary files have the same
// encoding. A type's layout is found once by reflection; only maps need it for each record,
// to read their entries. Several goroutines may compile and run one
// job at once, if the author's functions allow it, but only one may build it.
//
// Where to look, in the order of events:
//
//	describing a job               input.go, csv.go, rows.go (columns to structs), pairs.go, reduce.go, join.go, format.go, job.go
//	common to all kinds of jobs    stage.go
//	flags, modes of the process    internal/program, called by main.go
//	programs that drive jobs       drive.go, dataset.go, internal/driver
//	properties                     internal/property: names, defaults, values, Hadoop's names;
//	                               properties.go: -D for one job of a flow
//	order of jobs                  joborder.go
//	a job's plan                   plan.go: reduces, inputs, output, side files
//	errors before submission       check.go: names and outputs of jobs;
//	                               Pairs.check, Result.check, checkFormat: types and use;
//	                               fields_examine.go: fields that a type leaves out
//	functions on bytes             compile.go
//	an attempt, Write, misuse      task.go
//	records that a map emits       foldtable.go, then collect.go, which picks the partition,
//	                               then combine.go, after the sort
//	records that a reduce reads    group.go
//	top values, samples            top.go, sample.go
//	words of a line                words.go
//	encodings, hashes, text        codec.go, codec_kinds.go, pair.go, fields.go;
//	                               layout.go: types without methods;
//	                               internal/javatext: floats
package mapreduce
