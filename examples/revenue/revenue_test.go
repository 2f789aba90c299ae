package main

import (
	"bytes"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/quernmr/quern/formats/parquet"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// lineitem is a part of TPC-H's table.
type lineitem struct {
	Comment  string `parquet:"l_comment"`
	Price    int64  `parquet:"l_extendedprice,decimal(2:15)"`
	Discount int64  `parquet:"l_discount,decimal(2:15)"`
	Shipped  int32  `parquet:"l_shipdate,date"`
}

func TestRevenue(t *testing.T) {
	day := int32(parquet.DateOf(1995, 1, 1))
	var file bytes.Buffer
	if err := pq.Write(&file, []lineitem{{"a", 1000, 5, day - 1}, {"b", 200, 10, day}, {"c", 1, 1, day - 9}}); err != nil {
		t.Fatal(err)
	}
	for before, want := range map[string]string{"": "discounts\t7001\n", "1995-01-01": "discounts\t5001\n"} {
		job, err := revenue(before, true)
		if err != nil {
			t.Fatal(err)
		}
		job.Properties = map[string]string{"mapreduce.input.fileinputformat.split.maxsize": "100"}
		files := mrtest.RunFiles(t, job, map[string]string{"lineitem.parquet": file.String()}).Files
		if got := files["part-r-00000"]; got != want {
			t.Errorf("-before %q: %q, want %q", before, got, want)
		}
	}
	if _, err := revenue("yesterday", true); err == nil {
		t.Error("-before yesterday was accepted")
	}
}
