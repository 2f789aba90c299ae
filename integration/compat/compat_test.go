package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// TestAsk: a difference from a record is reported with its line or, with -rewrite, recorded. An
// unavailable peer is skipped; every other error is a failure.
func TestAsk(t *testing.T) {
	t.Chdir(t.TempDir())
	const old, file = "# comment\n\na = 1\nb = 2\n", "testdata/x.txt"
	answering := func(now string, differs ...string) check {
		return check{run: func(context.Context) (answers, error) {
			return answers{records: map[string]string{file: now}, differences: differs}, nil
		}}
	}
	failing := func(err error) check {
		return check{run: func(context.Context) (answers, error) { return answers{}, err }}
	}
	for _, c := range []struct {
		check   check
		rewrite bool
		state   string
		lines   int
		why     string
		file    string // afterwards
	}{
		{answering(old), false, failed, 0, file, ""},
		{answering(old), true, recorded, 2, "", old},
		{answering(old), false, same, 2, "", old},
		{answering(old), true, same, 2, "", old},
		{answering("# comment\n\na = 1\nb = 3\n"), false, differs, 2, `testdata/x.txt: line 4 was "b = 2" and is "b = 3"`, old},
		{answering(old + "c = 4\n"), false, differs, 3, `line 5 was "" and is "c = 4"`, old},
		{answering("# comment\n\na = 1"), false, differs, 1, `line 4 was "b = 2" and is nothing`, old},
		{answering(old, "query 1"), true, differs, 2, "query 1", old}, // no test records it
		{answering("a = 1\n"), true, recorded, 1, "", "a = 1\n"},
		{failing(fmt.Errorf("%w: no java", minicluster.ErrUnavailable)), false, skipped, 0, "no java", "a = 1\n"},
		{failing(errors.New("out of memory")), true, failed, 0, "out of memory", "a = 1\n"},
	} {
		r := c.check.ask(t.Context(), c.rewrite)
		if r.state != c.state || r.lines != c.lines || !strings.Contains(r.reason, c.why) || (r.reason == "") != (c.why == "") {
			t.Errorf("%s of %d lines: %s; want %s of %d: %s", r.state, r.lines, r.reason, c.state, c.lines, c.why)
		}
		if now, _ := os.ReadFile(file); string(now) != c.file {
			t.Errorf("%s: the record is now %q, want %q", c.state, now, c.file)
		}
	}
}

// TestShow: the table has each check with its peer, the peer's version, the result and the day.
func TestShow(t *testing.T) {
	table := show([]result{
		{check{name: "a", peer: "Hadoop", compared: "globs", gate: "`x.TestX`"}, answers{version: "3.4.2", lines: 7}, same, ""},
		{check{name: "two", peer: "DuckDB, Hadoop's Parquet", compared: "files"}, answers{version: "2.0.0, 1.15.2"}, same, ""},
		{check{name: "b", peer: "Spark", compared: "queries"}, answers{}, skipped, "no java"},
	}, time.Unix(0, 0))
	for _, want := range []string{"| a | Hadoop 3.4.2 | globs | 7 | same | 1970-01-01 | `x.TestX` |\n", "| two | DuckDB 2.0.0, Hadoop's Parquet 1.15.2 | files | 0 |", "| b | Spark | queries | 0 | skipped |", "b skipped:\n\n```\nno java\n```\n"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}

// TestUpdated: a run replaces the rows of its checks on the page; a check that was skipped or not run keeps its row, and
// one that is gone loses it.
func TestUpdated(t *testing.T) {
	all := []check{{name: "a", peer: "Hadoop"}, {name: "b", peer: "Spark"}, {name: "c"}}
	old := updated("", []check{all[0], all[1], {name: "gone"}}, []result{{check: all[0], state: same}, {check: all[1], state: same}}, time.Unix(0, 0))
	got := updated(old, all, []result{{check: all[0], state: differs}, {check: all[1], state: skipped}}, time.Unix(0, 0).AddDate(1, 0, 0))
	_, rows, _ := strings.Cut(got, tableHead)
	const want = "| a | Hadoop |  | 0 | differs | 1971-01-01 |  |\n| b | Spark |  | 0 | same | 1970-01-01 |  |\n| c |  |  | 0 | never run | – |  |\n"
	if rows != want {
		t.Errorf("the rows are\n%swant\n%s", rows, want)
	}
}

// TestChoose: each name selects one check, and an unknown name is refused.
func TestChoose(t *testing.T) {
	all := checks(t.TempDir(), "")
	for _, c := range all {
		if found, err := choose(all, c.name); err != nil || len(found) != 1 {
			t.Errorf("%s: %d checks, %v", c.name, len(found), err)
		}
	}
	if selected, err := choose(all, ""); err != nil || len(selected) != len(all) {
		t.Errorf("%d of %d checks, %v", len(selected), len(all), err)
	}
	if selected, err := choose(all, "names,globs"); err != nil || len(selected) != 2 || selected[0].name != "names" || selected[1].name != "globs" {
		t.Errorf("%d checks, %v", len(selected), err)
	}
	if _, err := choose(all, "globs,odd"); err == nil || !strings.Contains(err.Error(), `"odd"`) {
		t.Errorf("an unknown name: %v", err)
	}
}
