package wire

import "strings"

// Groups of counters: first Hadoop's groups, then Quern's.
const (
	hadoopPrefix       = "org.apache.hadoop.mapreduce."
	TaskCounters       = hadoopPrefix + "TaskCounter"
	JobCounters        = hadoopPrefix + "JobCounter"
	FileSystemCounters = hadoopPrefix + "FileSystemCounter"
	InputCounters      = hadoopPrefix + "lib.input.FileInputFormatCounter"
	OutputCounters     = hadoopPrefix + "lib.output.FileOutputFormatCounter"

	ReadCounters  = "quern.ReadCounter" // bytes that maps read, by distance, if the file system names the machines
	QuernCounters = "Quern"
)

// Names of the counters that Quern counts.
const (
	// In TaskCounters.
	MapInputRecords      = "MAP_INPUT_RECORDS"
	MapSkippedRecords    = "MAP_SKIPPED_RECORDS"
	MapOutputRecords     = "MAP_OUTPUT_RECORDS"
	MapOutputBytes       = "MAP_OUTPUT_BYTES"
	MapOutputFileBytes   = "MAP_OUTPUT_MATERIALIZED_BYTES"
	SplitBytes           = "SPLIT_RAW_BYTES" // of the splits' descriptions in Hadoop
	ShuffledMaps         = "SHUFFLED_MAPS"
	MergedMapOutputs     = "MERGED_MAP_OUTPUTS"
	SpilledRecords       = "SPILLED_RECORDS"
	CombineInputRecords  = "COMBINE_INPUT_RECORDS"
	CombineOutputRecords = "COMBINE_OUTPUT_RECORDS"
	ReduceShuffleBytes   = "REDUCE_SHUFFLE_BYTES"
	ReduceInputGroups    = "REDUCE_INPUT_GROUPS"
	ReduceInputRecords   = "REDUCE_INPUT_RECORDS"
	ReduceSkippedGroups  = "REDUCE_SKIPPED_GROUPS"
	ReduceSkippedRecords = "REDUCE_SKIPPED_RECORDS"
	ReduceOutputRecords  = "REDUCE_OUTPUT_RECORDS"
	CPUMilliseconds      = "CPU_MILLISECONDS"
	GCMilliseconds       = "GC_TIME_MILLIS"

	// In JobCounters.
	LaunchedMaps    = "TOTAL_LAUNCHED_MAPS"
	LaunchedReduces = "TOTAL_LAUNCHED_REDUCES"
	FailedMaps      = "NUM_FAILED_MAPS"
	FailedReduces   = "NUM_FAILED_REDUCES"
	KilledMaps      = "NUM_KILLED_MAPS"
	KilledReduces   = "NUM_KILLED_REDUCES"
	DataLocalMaps   = "DATA_LOCAL_MAPS"
	RackLocalMaps   = "RACK_LOCAL_MAPS"
	OtherLocalMaps  = "OTHER_LOCAL_MAPS"

	// In InputCounters, OutputCounters and, after a file system's name, FileSystemCounters.
	BytesRead    = "BYTES_READ"
	BytesWritten = "BYTES_WRITTEN"

	// In QuernCounters.
	// MapOutputsPrefix begins the counters of maps by the codec that mapreduce.map.output.compress=auto has chosen:
	// MAP_OUTPUTS_PLAIN, MAP_OUTPUTS_LZ4 and MAP_OUTPUTS_ZSTD.
	MapOutputsPrefix = "MAP_OUTPUTS_"

	HeapObjects    = "HEAP_OBJECTS_ALLOCATED"
	GivenUpMaps    = "GIVEN_UP_MAPS"
	GivenUpReduces = "GIVEN_UP_REDUCES"
)

// CounterGroup is a group of counters for which Hadoop has a title, in Hadoop's order.
type CounterGroup struct {
	Title    string
	Counters []CounterTitle
}

// CounterTitle is Hadoop's title for a counter.
type CounterTitle struct{ Name, Title string }

// HadoopCounters returns the titles of a group of Hadoop, or a zero CounterGroup for other groups.
func HadoopCounters(group string) CounterGroup {
	switch hadoopPrefix + strings.TrimPrefix(group, hadoopPrefix) {
	case FileSystemCounters:
		return CounterGroup{"File System Counters", []CounterTitle{
			{BytesRead, "Number of bytes read"},
			{BytesWritten, "Number of bytes written"},
			{"READ_OPS", "Number of read operations"},
			{"LARGE_READ_OPS", "Number of large read operations"},
			{"WRITE_OPS", "Number of write operations"},
		}}
	case JobCounters:
		return CounterGroup{"Job Counters", []CounterTitle{
			{FailedMaps, "Failed map tasks"},
			{FailedReduces, "Failed reduce tasks"},
			{KilledMaps, "Killed map tasks"},
			{KilledReduces, "Killed reduce tasks"},
			{LaunchedMaps, "Launched map tasks"},
			{LaunchedReduces, "Launched reduce tasks"},
			{OtherLocalMaps, "Other local map tasks"},
			{DataLocalMaps, "Data-local map tasks"},
			{RackLocalMaps, "Rack-local map tasks"},
			{"SLOTS_MILLIS_MAPS", "Total time spent by all maps in occupied slots (ms)"},
			{"SLOTS_MILLIS_REDUCES", "Total time spent by all reduces in occupied slots (ms)"},
			{"MILLIS_MAPS", "Total time spent by all map tasks (ms)"},
			{"MILLIS_REDUCES", "Total time spent by all reduce tasks (ms)"},
		}}
	case TaskCounters:
		return CounterGroup{"Map-Reduce Framework", []CounterTitle{
			{MapInputRecords, "Map input records"},
			{MapOutputRecords, "Map output records"},
			{MapSkippedRecords, "Map skipped records"},
			{MapOutputBytes, "Map output bytes"},
			{MapOutputFileBytes, "Map output materialized bytes"},
			{SplitBytes, "Input split bytes"},
			{CombineInputRecords, "Combine input records"},
			{CombineOutputRecords, "Combine output records"},
			{ReduceInputGroups, "Reduce input groups"},
			{ReduceShuffleBytes, "Reduce shuffle bytes"},
			{ReduceInputRecords, "Reduce input records"},
			{ReduceOutputRecords, "Reduce output records"},
			{ReduceSkippedGroups, "Reduce skipped groups"},
			{ReduceSkippedRecords, "Reduce skipped records"},
			{SpilledRecords, "Spilled Records"},
			{ShuffledMaps, "Shuffled Maps"},
			{"FAILED_SHUFFLE", "Failed Shuffles"},
			{MergedMapOutputs, "Merged Map outputs"},
			{GCMilliseconds, "GC time elapsed (ms)"},
			{CPUMilliseconds, "CPU time spent (ms)"},
			{"PHYSICAL_MEMORY_BYTES", "Physical memory (bytes) snapshot"},
			{"VIRTUAL_MEMORY_BYTES", "Virtual memory (bytes) snapshot"},
			{"COMMITTED_HEAP_BYTES", "Total committed heap usage (bytes)"},
		}}
	case InputCounters:
		return CounterGroup{"File Input Format Counters", []CounterTitle{{BytesRead, "Bytes Read"}}}
	case OutputCounters:
		return CounterGroup{"File Output Format Counters", []CounterTitle{{BytesWritten, "Bytes Written"}}}
	}
	return CounterGroup{}
}
