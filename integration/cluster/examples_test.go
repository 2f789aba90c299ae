package cluster_test

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/integration/tpch/peers"
	"github.com/quernmr/quern/integration/trial"
)

// TestExamples: on a cluster too, generated rows, sorted ones, their reports and the estimate of pi are those of Hadoop.
func TestExamples(t *testing.T) {
	c := start(t, small)
	run := func(record, program string, args ...string) (out string) {
		out = filepath.Join(c.dir, record)
		c.mrsubmit(append([]string{"run", c.Program(program), "-output", out}, args...)...).Succeed()
		return out
	}
	files := func(dir string) map[string]string {
		files := make(map[string]string)
		names, err := filepath.Glob(dir + "/part-*")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(name)] = string(content)
		}
		return files
	}
	rows := run("teragen", "tera", "-do", "gen", "-maps", "3", "-rows", "200")
	parts := files(rows)
	examples.Check(t, "teragen", map[string]string{"part-m-00000": parts["part-m-00000"] + parts["part-m-00001"] + parts["part-m-00002"]})
	sorted := run("simple-2", "tera", "-do", "sort", "-simple", "-input", rows, "-D", "mapreduce.job.reduces=2")
	examples.Check(t, "simple-2", files(sorted))
	report := run("validate-sorted", "tera", "-do", "validate", "-input", sorted)
	examples.Check(t, "validate-sorted", map[string]string{"sorted": examples.Sorted(files(report))})
	estimate := run("pi-3-1000", "pi", "-maps", "3", "-samples", "1000")
	examples.Check(t, "pi-3-1000", map[string]string{"printed": files(estimate)["part-r-00000"]})

	short := filepath.Join(c.dir, "short")
	if err := os.WriteFile(short, []byte(strings.Repeat("r", 250)), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(c.dir, "short-report")
	c.mrsubmit("run", c.Program("tera"), "-do", "validate", "-input", short, "-output", out).Fail(1, "short: ", "the last row has 50 bytes, not 100")
	c.mrsubmit("run", c.Program("tera"), "-do", "gen", "-rows", "-5", "-output", out).Fail(1, "-rows -5: want a number of 0 or more")
	c.mrsubmit("run", c.Program("tera"), "-do", "sort", "-input", filepath.Join(c.dir, "missing"), "-output", out).Fail(1, "missing")
}

// TestExamplesAsEmbedded: the other examples have the same files on a cluster as embedded.
func TestExamplesAsEmbedded(t *testing.T) {
	c := start(t, small)
	words, numbers := c.file("words", "b a c\nto be or not to be\na\n"), c.file("numbers", "2 7\n1 5\n2 -3\n1 5\n")
	left, right := c.file("left", "a\t1\nb\t2\na\t3\n"), c.file("right", "a\tx\nc\ty\na\tz\n")
	var table bytes.Buffer
	if err := parquet.Write(&table, []struct {
		Price    int64 `parquet:"l_extendedprice,decimal(2:15)"`
		Discount int64 `parquet:"l_discount,decimal(2:15)"`
		Shipped  int32 `parquet:"l_shipdate,date"`
	}{{1000, 5, 9000}, {200, 10, 9131}}); err != nil {
		t.Fatal(err)
	}
	tables := filepath.Join(c.dir, "tables")
	if err := os.Mkdir(tables, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, rows := range peers.Small(30) {
		c.file(filepath.Join("tables", name+".tbl"), rows)
	}
	reduces := []string{"-D", "mapreduce.job.reduces=2"}
	for program, args := range map[string][]string{
		"grep":          {"-e", "[a-c]", "-count", "-input", words},
		"invertedindex": append(reduces, "-input", words+","+numbers),
		"join":          append(reduces, "-left", left, "-right", right, "-op", "outer"),
		"randomtext":    {"-maps", "3", "-bytes", "1000"},
		"revenue":       {"-text", "-input", c.file("lineitem.parquet", table.String())},
		"secondarysort": append(reduces, "-input", numbers),
		"sort":          append(reduces, "-input", words),
		"tpch":          append(reduces, "-query", "3", "-tables", tables),
		"wordcount":     append(reduces, "-input", words),
		"wordmean":      {"-input", words},
	} {
		t.Run(program, func(t *testing.T) {
			out, alone := filepath.Join(c.dir, program+"-out"), filepath.Join(c.dir, program+"-alone")
			c.mrsubmit(append([]string{"run", c.Program(program), "-output", out}, args...)...).Succeed()
			args = append([]string{"-output", alone, "-D", "quern.embedded.dir=" + t.TempDir()}, args...)
			trial.Begin(t, exec.CommandContext(c.ctx, c.Program(program), args...)).Succeed()
			got, want := written(t, out), written(t, alone)
			if len(want) == 0 || !maps.Equal(got, want) {
				t.Errorf("on the cluster %q\nembedded %q", got, want)
			}
		})
	}
}

// written returns the contents of the files below an output directory, by path.
func written(t *testing.T, out string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := fs.WalkDir(os.DirFS(out), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(out, name))
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
