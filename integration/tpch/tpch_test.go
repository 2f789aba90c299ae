// Package tpch_test runs examples/tpch as a user does and compares its answers with DuckDB's
// recorded answers. integration/compat compares them over the generator's tables.
package tpch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/tpch/peers"
)

// program is examples/tpch, built once.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "quern-tpch-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "tpch")
	if err := processes.BuildPrograms(dir, "examples/tpch"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// deadline is generous: it only ends a test that hangs.
const deadline = 5 * time.Minute

func run(t *testing.T, args ...string) (exit int, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var printed bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = &printed
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), printed.String()
}

// answer returns the joined part files of the output. A flow of several jobs has them in the
// directory answer.
func answer(t *testing.T, out string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range []string{"part-r-*", "answer/part-r-*"} {
		names, err := filepath.Glob(filepath.Join(out, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(content)
		}
	}
	return all.String()
}

// writeSmall writes the tables of [peers.Small].
func writeSmall(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, rows := range peers.Small(30) {
		write(t, filepath.Join(dir, name+".tbl"), rows)
	}
	return dir
}

// divide replaces a table's file by a directory of parts.
func divide(t *testing.T, dir, table string, parts ...string) {
	t.Helper()
	if err := errors.Join(os.Remove(filepath.Join(dir, table+".tbl")), os.Mkdir(filepath.Join(dir, table), 0o777)); err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		write(t, filepath.Join(dir, table, fmt.Sprintf("%s.%d.tbl", table, i+1)), part)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestAnswers: the answers equal DuckDB's, which `make compat` records, with one file per table and
// with several, and with many maps and reduces.
func TestAnswers(t *testing.T) {
	for _, files := range []int{1, 3} { // of each table, and reduces of each job
		dir := t.TempDir()
		for table, rows := range peers.Small(peers.SmallOrders) {
			write(t, filepath.Join(dir, table+".tbl"), rows)
			if files > 1 {
				divide(t, dir, table, inParts(rows, files)...)
			}
		}
		for _, query := range peers.Queries() {
			t.Run(fmt.Sprintf("%d files, query %d", files, query), func(t *testing.T) {
				want, err := os.ReadFile(fmt.Sprintf("testdata/%d.txt", query))
				if err != nil {
					t.Fatal(err)
				}
				out := filepath.Join(t.TempDir(), "out")
				exit, stderr := run(t, "-query", fmt.Sprint(query), "-tables", dir, "-output", out,
					"-D", fmt.Sprintf("mapreduce.job.reduces=%d", files), "-D", "mapreduce.input.fileinputformat.split.maxsize=200000")
				if exit != 0 {
					t.Fatalf("exit %d\n%s", exit, stderr)
				}
				if got := answer(t, out); got != string(want) || got == "" {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
			})
		}
	}
}

// inParts splits rows into n parts at line ends.
func inParts(rows string, n int) (parts []string) {
	lines := strings.SplitAfter(rows, "\n")
	for i := range n {
		parts = append(parts, strings.Join(lines[i*len(lines)/n:(i+1)*len(lines)/n], ""))
	}
	return parts
}

// TestRefusedTables: the error for a wrong line names its file and offset, and the failed query
// leaves no files.
func TestRefusedTables(t *testing.T) {
	lines := peers.Small(30)["lineitem"]
	first, rest, _ := strings.Cut(lines, "\n")
	at := fmt.Sprint("lineitem.tbl, offset ", len(first)+1)
	last := strings.LastIndexByte(lines[:len(lines)-1], '\n') + 1
	fields := strings.SplitAfter(strings.SplitN(rest, "\n", 2)[0], "|")
	edit := func(column int, text string) string {
		changed := append([]string(nil), fields...)
		changed[column] = text
		return first + "\n" + strings.Join(changed, "") + "\n" + lines
	}
	for name, c := range map[string]struct {
		content string
		wants   []string
	}{
		"too few fields":  {edit(7, ""), []string{at, "15 fields", "want 16"}},
		"cut off":         {lines[:len(lines)-9], []string{fmt.Sprintf("lineitem.tbl, offset %d, line %d: ", last, strings.Count(lines, "\n")), "want 16"}},
		"too many fields": {edit(7, "1.00|2.00|"), []string{at, "more than 16 fields"}},
		"empty line":      {edit(0, "\n"), []string{at, "0 fields"}},
		"bad decimal":     {edit(5, "1O.00|"), []string{at, "field 6, l_extendedprice", `"1O.00"`, "decimal"}},
		"three places":    {edit(6, "0.051|"), []string{at, "field 7, l_discount", "0.051"}},
		"bad date":        {edit(10, "1995-02-3x|"), []string{at, "field 11, l_shipdate", "1995-02-3x", "date"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeSmall(t)
			write(t, filepath.Join(dir, "lineitem.tbl"), c.content)
			checkRefused(t, append(c.wants, dir, "attempt_"), "-query", "1", "-tables", dir, "-D", "mapreduce.map.maxattempts=1")
		})
	}
	for name, c := range map[string]struct{ line, want string }{
		"small side, bad number":     {"2|CHINA|one|x|", `field 3, n_regionkey: "one"`},
		"small side, too few fields": {"2|CHINA|1|", "a line has 3 fields that end with '|', want 4"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeSmall(t)
			divide(t, dir, "nation", "0|KENYA|0|x|\n", "1|INDIA|1|x|\n"+c.line+"\n")
			want := fmt.Sprintf(": read the small side of a BroadcastJoin: file://%s/nation/nation.2.tbl, offset 13, line 2: %s", dir, c.want)
			checkRefused(t, []string{want}, "-query", "5", "-tables", dir, "-D", "mapreduce.map.maxattempts=1")
		})
	}
}

// TestTooLarge: a query with too large numbers fails, and does not write a wrong answer.
func TestTooLarge(t *testing.T) {
	for _, c := range []struct {
		query, discount string
		wants           []string
	}{
		{"1", "-1.00", []string{"the sum does not fit an int64"}},
		{"1", "999999999999.00", []string{"lineitem.tbl, offset 0, line 1: ", "99999999999999 times -99999999999800 does not fit an int64"}},
		{"3", "-899.99", []string{"the sum does not fit an int64"}},
		{"5", "-899.99", []string{"the sum does not fit an int64"}},
		{"6", "0.07", []string{"the sum does not fit an int64"}},
		{"10", "-899.99", []string{"the sum does not fit an int64"}},
	} {
		dir := writeSmall(t)
		var lines strings.Builder
		for line := range strings.Lines(peers.Small(30)["lineitem"]) {
			fields := strings.Split(line, "|")
			fields[5], fields[6], fields[7] = "999999999999.99", c.discount, "1.00"
			if c.query == "6" {
				fields[4], fields[10] = "1.00", "1994-06-01"
			}
			lines.WriteString(strings.Join(fields, "|"))
		}
		if c.query == "6" { // its discounts are small, so its sum needs more rows
			one := lines.String()
			for range 14_000 / strings.Count(one, "\n") {
				lines.WriteString(one)
			}
		}
		write(t, filepath.Join(dir, "lineitem.tbl"), lines.String())
		checkRefused(t, c.wants, "-query", c.query, "-tables", dir, "-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.reduce.maxattempts=1")
	}
}

// TestRefusedAtSubmission: missing tables are refused before anything runs.
func TestRefusedAtSubmission(t *testing.T) {
	empty := t.TempDir()
	checkRefused(t, []string{"no file matches", empty + "/customer"}, "-query", "3", "-tables", empty)
	checkRefused(t, []string{"no file matches", "/nowhere/lineitem"}, "-query", "6", "-tables", "/nowhere")
	for _, table := range []string{"orders", "nation", "supplier"} {
		dir := writeSmall(t)
		if err := os.Remove(filepath.Join(dir, table+".tbl")); err != nil {
			t.Fatal(err)
		}
		checkRefused(t, []string{"no file matches", dir + "/" + table}, "-query", "5", "-tables", dir)
	}
	for _, table := range []string{"lineitem", "nation"} { // the latter is a small side
		dir := writeSmall(t)
		divide(t, dir, table, "")
		write(t, filepath.Join(dir, table+".tbl"), peers.Small(30)[table])
		checkRefused(t, []string{dir + "/" + table + ".tbl", dir + "/" + table + "/" + table + ".1.tbl", "only one"}, "-query", "5", "-tables", dir)
	}
	checkRefused(t, []string{"got 7", "1, 3, 5, 6, 10 or 13"}, "-query", "7", "-tables", empty)
	checkRefused(t, []string{"-tables"}, "-query", "1")
}

func checkRefused(t *testing.T, wants []string, args ...string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	exit, stderr := run(t, append(args, "-output", out)...)
	if exit != 1 {
		t.Errorf("%v: exit %d, want 1\n%s", args, exit, stderr)
	}
	for _, want := range wants {
		if !strings.Contains(stderr, want) {
			t.Errorf("%v: message lacks %q:\n%s", args, want, stderr)
		}
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v: %s is left behind (%v)", args, out, err)
	}
}
