package main

import (
	"context"
	"fmt"

	"github.com/quernmr/quern/integration/tpch/peers"
)

// checks returns all checks in the order in which they run; dir is for their files.
func checks(dir, cases string) []check {
	h, q := hadoop{dir}, tpch{dir}
	return []check{
		{"globs", "Hadoop", "files that match a glob", "`runtime.TestGlobs`", h.recorded("globs", "runtime/testdata/globs.txt")},
		{"inputs", "Hadoop", "files that a job reads: hidden ones, subdirectories", "`runtime.TestInputsOfHadoop`", h.recorded("inputs", "runtime/testdata/inputs.txt")},
		{"names", "Hadoop", "the meaning of paths with and without scheme", "`dfs.TestNames`", h.recorded("names", "dfs/testdata/names.txt")},
		{"lines", "Hadoop", "lines in each split, with delimiters, a maximum length, and a number of lines; records of a fixed length", "`runtime.TestLinesOfHadoop`", h.recorded("lines", "runtime/testdata/lines.txt")},
		{"keyvalues", "Hadoop", "keys and values of lines", "`mapreduce.TestKeyValuesOfHadoop`", h.recorded("keyvalues", "mapreduce/testdata/keyvalues.txt")},
		{"writables", "Hadoop", "printed form and hash of keys and values", "`mapreduce.TestJavaTable`", h.recorded("writables", "mapreduce/testdata/java.txt")},
		{"properties", "Hadoop", "names of properties", "`mapreduce.TestHadoopNames`", h.recorded("properties", "mapreduce/testdata/hadoop-default.txt")},
		{"renamed", "Hadoop", "old names of properties", "`mapreduce.TestHadoopNames`", h.recorded("renamed", "internal/hadoop/renamed.txt")},
		{"shell", "Hadoop", "output and exit codes of commands of the file system shell", "`cmd/internal/fsshell.TestCommandsOfHadoop`, `integration/hdfs.TestShellOfHadoop`", shell{dir}.recorded},
		{"files", "Hadoop", "compressed files and SequenceFiles that one writes and the other reads, and their splits", "`compression.TestHadoop`, `sequencefile.TestHadoop`, `runtime.TestBzip2SplitsOfHadoop`", files{dir}.compared},
		{"examples", "Hadoop", "what examples write: TeraSort and others, with 1, 2 and 7 reduces", "`examples/tera.TestHadoop` and those of the other examples", exampleJobs{dir}.compared},
		{"habits", "Hadoop", "counters, files and permissions of jobs, also over HDFS, and partitions of keys", "`integration/embedded.TestHadoopJobs`, `integration/hdfs.TestJobsOfHadoop`, `mapreduce.TestHadoopPartitions`", habits{dir}.recorded},
		{"formats", "Hadoop", "files of word counts and sorts of SequenceFiles and Avro files, with 1, 2 and 7 reduces", "`formats/sequence.TestHadoopJobs`, `formats/avro.TestHadoopJobs`", formatJobs{dir}.recorded},
		{"avro", "Avro", "Avro files that one writes and the other reads, by each codec, and their splits", "`avrofile.TestJava`, `avrofile.TestJavaSplits`", avroFiles{dir}.compared},
		{"streaming", "Hadoop", "output and exit codes of Streaming", "`cmd/mrsubmit.TestStreamingCases`", streaming{dir, cases}.recorded},
		{"mrjob", "mrjob", "jobs of mrjob `-r hadoop` with Quern as hadoop, also over HDFS and on task trackers: its calls, and what it understands of the answers", "`cmd/mrsubmit.TestMrjob`", mrjobs{dir: dir}.recorded},
		{"secured", "Hadoop", "files that one writes and the other reads, at each level of protection with Kerberos", "`dfs/hdfs.TestSecured`", secured{dir}.compared},
		{"failover", "Hadoop", "a user's job with Kerberos and, as root, with the user's account, while a NameNode fails over, for longer than a token lives", "`dfs/hdfs.TestPrincipals`", failover{dir}.compared},
		{"tpch-tiny", "DuckDB", "answers to TPC-H queries, in one process", "`examples/tpch.TestQueries`", q.recorded(peers.TinyOrders, "examples/tpch/testdata")},
		{"tpch-small", "DuckDB", "answers to TPC-H queries, with worker processes", "`integration/tpch.TestAnswers`", q.recorded(peers.SmallOrders, "integration/tpch/testdata")},
		{"tpch", "DuckDB", "the same at scales 0.01 and 0.1, with one or several files per table", "`integration/tpch.TestAnswers`",
			q.compared(peers.DuckDB, shape{"0.01", 1, 1_000_000}, shape{"0.01", 3, 1_000_000}, shape{"0.1", 2, 8_000_000})},
		{"parquet", "DuckDB, Hadoop's Parquet", "Parquet files of each codec and type that one writes and the other reads", "`formats/parquet.TestDuckDB`, `parquetfile.TestDuckDBNested`", parquet{dir}.compared},
		{"metrics", "Prometheus", "alert rules with their tests, queries of the dashboard, configuration, and the metrics of real daemons", "`cmd/internal/metrics.TestFiles`", promtool{dir}.compared},
		{"pages", "Chromium", "every page of a real cluster: live, after a change of the leader, dark, narrow, without JavaScript, by keyboard; axe-core finds no mistake", "`integration/browser.TestMainPages`, with a Chromium", openPages},
		{"tpch-spark", "Spark", "the same at scale 0.01", "`integration/tpch.TestAnswers`", q.compared(peers.Spark, shape{"0.01", 1, 1_000_000})},
	}
}

// tpch runs TPC-H's queries in peers; dir is for tables and outputs.
type tpch struct{ dir string }

// cores is the number of cores that a peer uses.
const cores = 2

// recorded returns the run of a check with recorded answers of DuckDB, over the tables of
// [peers.Small].
func (q tpch) recorded(orders int, testdata string) func(context.Context) (answers, error) {
	return func(ctx context.Context) (answers, error) {
		duckdb, err := peers.DuckDB(ctx)
		if err != nil {
			return answers{}, err
		}
		tables, err := q.small(orders)
		if err != nil {
			return answers{}, err
		}
		a := answers{version: version(duckdb), records: make(map[string]string)}
		for _, query := range peers.Queries() {
			got, err := duckdb.Ask(ctx, tables, query, cores)
			if err != nil {
				return answers{}, err
			}
			a.records[fmt.Sprintf("%s/%d.txt", testdata, query)] = got.Lines
		}
		return a, nil
	}
}
