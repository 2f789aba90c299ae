package main

import (
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestLeftJoin: orders without a customer stay, and names keep their quotes and line breaks.
func TestLeftJoin(t *testing.T) {
	job := mrtest.Program(func() (*mapreduce.Job, error) { return leftJoin("orders.csv", "customers.csv"), nil })
	out := mrtest.RunFiles(t, job, map[string]string{
		"orders.csv":    "order,amount,customer,note\n7,1.50,2,\"a, b\"\n8,20,3,\n9,0.10,1,\n",
		"customers.csv": "name,id\n\"Smith, \"\"Jo\"\"\",1\n\"two\nlines\",2\nNobody,4\n",
	})
	want := "order,customer,amount,name\n9,1,0.10,\"Smith, \"\"Jo\"\"\"\n7,2,1.50,\"two\nlines\"\n8,3,20,\n"
	if got := out.Text(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
