package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

func run(t *testing.T, op string, files map[string]string) *mrtest.Output {
	return mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) { return join("left", "right", op) }), files)
}

// TestHadoop: the lines are those of Hadoop's example, in any order, because values of a key have none.
func TestHadoop(t *testing.T) {
	tables := map[string]string{"left": examples.Table("left", 40), "right": examples.Table("right", 40)}
	for _, op := range []string{"inner", "outer"} {
		examples.Check(t, "join-"+op, map[string]string{"sorted": examples.Sorted(run(t, op, tables).Files)})
	}
}

// TestHadoopReduces: each part file has the keys of Hadoop's.
func TestHadoopReduces(t *testing.T) {
	tables := map[string]string{"left": examples.Table("left", 40), "right": examples.Table("right", 40)}
	for _, reduces := range []int{1, 2, 7} {
		out := mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) {
			job, err := join("left", "right", "inner")
			job.FixedReduces = reduces
			return job, err
		}), tables)
		files := make(map[string]string)
		for name, content := range out.Files {
			files[name] = examples.Sorted(map[string]string{name: content}) // values of a key have no order
		}
		examples.Check(t, fmt.Sprintf("joined-%d", reduces), files)
	}
}

func TestJoin(t *testing.T) {
	tables := map[string]string{"left": "b\t1\na\t2\nc\n", "right": "d\t5\nb\t3\n"}
	if got, want := run(t, "inner", tables).Text(), "b\t[1,3]\n"; got != want {
		t.Errorf("inner: got %q, want %q", got, want)
	}
	if got, want := run(t, "outer", tables).Text(), "a\t[2,]\nb\t[1,3]\nc\t[,]\nd\t[,5]\n"; got != want {
		t.Errorf("outer: got %q, want %q", got, want)
	}
}

// TestBadUse: missing inputs and unknown operations are refused.
func TestBadUse(t *testing.T) {
	for _, c := range []struct{ left, right, op, want string }{{"", "r", "inner", "give -left and -right"}, {"l", "", "outer", "give -left"}, {"l", "r", "override", "want inner or outer"}} {
		if _, err := join(c.left, c.right, c.op); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
}
