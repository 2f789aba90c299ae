package avro_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quernmr/quern/avrofile"
	"github.com/quernmr/quern/formats/avro"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// Order is a record of the input. Files with other fields are refused, unless Input gets a schema.
type Order struct {
	Customer string  `avro:"customer"`
	Total    float64 `avro:"total"`
}

// Turnover is a record of the output.
type Turnover struct {
	Customer string  `avro:"customer"`
	Sum      float64 `avro:"sum"`
}

func total(_ *mapreduce.Task, o Order, emit func(string, float64)) error {
	emit(o.Customer, o.Total)
	return nil
}

// turnover is a job that adds up the orders of each customer, from Avro files to Avro files.
func turnover() *mapreduce.Job {
	totals := mapreduce.Map(avro.Input[Order](nil), total) // nil: by the schema of each file
	job := mapreduce.Fold(totals, func(a, b float64) float64 { return a + b }).Job("turnover")
	job.Format = avro.Output(nil, func(customer string, sum float64) Turnover { return Turnover{customer, sum} })
	return job
}

// orders is a file of orders in Avro.
func orders(all ...Order) string {
	var file strings.Builder
	schema := avro.MustParse(`{"type": "record", "name": "Order", "fields": [{"name": "customer", "type": "string"}, {"name": "total", "type": "double"}]}`)
	w, err := avrofile.NewWriter(&file, schema, avrofile.Options{Codec: "snappy"})
	if err != nil {
		panic(err)
	}
	for _, o := range all {
		if err := w.Encode(o); err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return file.String()
}

// TestExample: the job of the docs adds up orders.
func TestExample(t *testing.T) {
	out := mrtest.RunFiles(t, turnover(), map[string]string{"orders.avro": orders(Order{"b", 1}, Order{"a", 2.5}, Order{"b", 3})})
	file := out.Files["part-r-00000.avro"]
	r, err := avrofile.NewReader(strings.NewReader(file), int64(len(file)), avrofile.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := ""
	for record, err := range avrofile.Records[Turnover](r, nil, 0, int64(len(file))) {
		got += fmt.Sprint(record, err)
	}
	if want := "{a 2.5} <nil>{b 4} <nil>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func ExampleInput() {
	totals := mapreduce.Map(avro.Input[Order](nil), total)
	mrtest.PrintFiles(mapreduce.Sort(totals).Job("list"), map[string]string{"orders.avro": orders(Order{"b", 1.5}, Order{"a", 2.5})})
	// Output:
	// part-r-00000:
	// a	2.5
	// b	1.5
}
