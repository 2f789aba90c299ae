package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/integration/tpch/peers"
)

// parquet compares Parquet files. Those of DuckDB and of Hadoop's Parquet are recorded, with their values. Both read
// Quern's, which integration/compat/parquetrows writes.
type parquet struct{ dir string }

const (
	hadoopParquet = "1.15.2"
	parquetDir    = "formats/parquet/testdata/"
	nestedDir     = "parquetfile/testdata/"
	parquetRows   = 200
	parquetCodecs = "uncompressed snappy gzip brotli zstd lz4_raw"
	hadoopCodecs  = "uncompressed snappy gzip zstd lz4_raw" // those that need no native code beside their jars

	// parquetTable has the same rows as parquetrows.
	parquetTable = `create table rows as select n, n %% 2 = 0 as b, (n %% 100 - 50)::tinyint as i8, (n * 10)::smallint as i16, (n * -1000)::int as i32,
		(n %% 200)::utinyint as u8, (n * 60)::usmallint as u16, (n * 4000000)::uinteger as u32, n::ubigint * 18014398509481984::ubigint as u64,
		(n / 4.0)::float as f, (n / -8.0)::double as d, 'word ' || (n %% 7) as s, ('word ' || (n %% 7))::blob as x, date '1970-01-01' + (n * 37 - 1000)::int as "day",
		make_timestamp(n * 1000003) as us, make_timestamp_ms(n * 1003)::timestamp_ms as ms, make_timestamp_ns(n * 1000000007) as ns,
		((n * n - 99)::decimal(18,3) / 1000)::decimal(9,3) as dec9, ((n * n * n)::decimal(18,2) / 100)::decimal(15,2) as dec15,
		case when n %% 5 > 0 then n end as ni, case when n %% 5 > 0 then 'word ' || (n %% 7) end as nss, case when n %% 5 > 0 then (n::decimal(15,2) / 100)::decimal(15,2) end as nd
		from (select range::bigint as n from range(%d));`
	// parquetValues prints rows with exact numbers.
	parquetValues = `select n, b::int, i8, i16, i32, u8, u16, u32, u64, (f * 4)::bigint, (d * 8)::bigint, s, hex(x), date_diff('day', date '1970-01-01', "day"),
		epoch_us(us), epoch_ms(ms), epoch_ns(ns), (dec9 * 1000)::bigint, (dec15 * 100)::bigint, ni, nss, (nd * 100)::bigint from %s order by n;`

	// nestedTable has lists, maps and structs, with nulls and without elements.
	nestedTable = `create table nested as select n, case when n %% 5 > 0 then range(n %% 4) end as l, [case when i %% 2 = 0 then 'w' || i end for i in range(n %% 3)] as words,
		{'a': n, 'b': case when n %% 3 > 0 then {'c': [n, null]} end} as s, [{'x': i / 2.0, 'y': [[i], [], null]} for i in range(n %% 3)] as deep,
		map(['k' || i for i in range(n %% 3)], [case when i > 0 then [i] end for i in range(n %% 3)]) as m, case when n %% 7 > 0 then ((n - 20) / 8.0)::decimal(20,3) end as dec,
		(date '2020-01-01' + n::int) as "day", n %% 2 = 0 as b from (select range::bigint as n from range(%d));`
)

func (p parquet) compared(ctx context.Context) (answers, error) {
	duckdb, err := peers.DuckDB(ctx)
	if err != nil {
		return answers{}, err
	}
	a := answers{version: version(duckdb) + ", " + hadoopParquet, records: make(map[string]string)}
	values, err := p.written(ctx, duckdb, &a)
	if err != nil {
		return a, err
	}
	a.records[parquetDir+"values.txt"] = values
	if err := p.nested(ctx, duckdb, &a); err != nil {
		return a, err
	}
	if err := p.readByDuckDB(ctx, duckdb, values, &a); err != nil {
		return a, err
	}
	return a, p.hadoop(ctx, values, &a)
}

// hadoop records the files of Hadoop's Parquet, which have the same rows, and lets it read those that readByDuckDB has
// written.
func (p parquet) hadoop(ctx context.Context, values string, a *answers) error {
	java, err := compiled(ctx, p.dir, "ParquetRows", "org.apache.parquet:parquet-hadoop-bundle:"+hadoopParquet, "io.airlift:aircompressor:0.27", "com.github.luben:zstd-jni:1.5.5-5",
		"org.apache.hadoop:hadoop-mapreduce-client-core:")
	if err != nil {
		return err
	}
	codecs := strings.Fields(hadoopCodecs)
	if _, err := java("", append([]string{"write", p.dir, fmt.Sprint(parquetRows)}, codecs...)...); err != nil {
		return err
	}
	for _, codec := range codecs {
		for _, version := range []string{"v1", "v2"} {
			name := "java-" + codec + "-" + version + ".parquet"
			file, err := os.ReadFile(filepath.Join(p.dir, name))
			if err != nil {
				return err
			}
			a.records[parquetDir+"hadoop/"+strings.TrimPrefix(name, "java-")] = string(file)
		}
		parts, err := filepath.Glob(filepath.Join(p.dir, "quern-"+codec, "*.parquet"))
		if err != nil {
			return err
		}
		got, err := java(strings.Join(parts, "\n")+"\n", "read")
		if err != nil {
			return err
		}
		rows := strings.SplitAfter(got, "\n")
		slices.SortFunc(rows, byNumber)
		a.lines += lines(got)
		if got = strings.Join(rows, ""); got != values {
			a.differences = append(a.differences, fmt.Sprintf("%s: DuckDB's values, then those that Hadoop's Parquet reads in Quern's files: %s", codec, difference(values, got)))
		}
	}
	return nil
}

// byNumber compares rows by their first column.
func byNumber(a, b string) int {
	number := func(row string) int {
		first, _, _ := strings.Cut(row, "|")
		n, _ := strconv.Atoi(first)
		return n
	}
	return cmp.Compare(number(a), number(b))
}

// written records DuckDB's files. It returns their values.
func (p parquet) written(ctx context.Context, duckdb *peers.Peer, a *answers) (string, error) {
	sql := fmt.Sprintf(parquetTable, parquetRows)
	var names []string
	for codec := range strings.FieldsSeq(parquetCodecs) {
		for _, version := range []string{"v1", "v2"} {
			name := codec + "-" + version + ".parquet"
			names = append(names, name)
			sql += fmt.Sprintf("\ncopy rows to '%s' (format parquet, compression %s, parquet_version %s, row_group_size 2048);", filepath.Join(p.dir, name), codec, version)
		}
	}
	values, err := duckdb.Query(ctx, "", sql+fmt.Sprintf(parquetValues, "rows"), 1)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		file, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			return "", err
		}
		a.records[parquetDir+name] = string(file)
	}
	return values.Lines, nil
}

// nested records files with lists, maps and structs, and their rows as JSON.
func (p parquet) nested(ctx context.Context, duckdb *peers.Peer, a *answers) error {
	names := []string{"nested-v1.parquet", "nested-v2.parquet"}
	sql := fmt.Sprintf(nestedTable, parquetRows)
	for i, name := range names {
		sql += fmt.Sprintf("\ncopy nested to '%s' (format parquet, parquet_version v%d, row_group_size 2048);", filepath.Join(p.dir, name), i+1)
	}
	rows, err := duckdb.Query(ctx, "", sql+"\nselect to_json(nested) from nested order by n;", 1)
	if err != nil {
		return err
	}
	for _, name := range names {
		file, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			return err
		}
		a.records[nestedDir+name] = string(file)
	}
	a.records[nestedDir+"nested.txt"] = rows.Lines
	return nil
}

// readByDuckDB lets DuckDB read files of Quern with the same rows.
func (p parquet) readByDuckDB(ctx context.Context, duckdb *peers.Peer, values string, a *answers) error {
	program, input := filepath.Join(p.dir, "parquetrows"), filepath.Join(p.dir, "numbers")
	if out, err := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./integration/compat/parquetrows").CombinedOutput(); err != nil {
		return fmt.Errorf("build parquetrows: %w\n%s", err, out)
	}
	var numbers strings.Builder
	for n := range parquetRows {
		fmt.Fprintln(&numbers, n)
	}
	if err := os.WriteFile(input, []byte(numbers.String()), 0o666); err != nil {
		return err
	}
	for codec := range strings.FieldsSeq(parquetCodecs) {
		output := filepath.Join(p.dir, "quern-"+codec)
		cmd := exec.CommandContext(ctx, program, "-input", input, "-output", output, "-D", "parquet.compression="+codec, "-D", "mapreduce.job.reduces=2")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("parquetrows: %w\n%s", err, out)
		}
		got, err := duckdb.Query(ctx, "", fmt.Sprintf(parquetValues, fmt.Sprintf("'%s/*.parquet'", output)), 1)
		if err != nil {
			return err
		}
		a.lines += lines(got.Lines)
		if got.Lines != values {
			a.differences = append(a.differences, fmt.Sprintf("%s: DuckDB's values, then those of Quern's file: %s", codec, difference(values, got.Lines)))
		}
	}
	return nil
}
