package mapreduce_test

import (
	"fmt"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// A reading is ordered by place, then from the latest year to the first.
type reading struct {
	Place string
	Year  int32 `mapreduce:"desc"`
}

// Your own struct as a key. Encoding, sorting, text and partition need no methods.
func Example_struct() {
	readings := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(reading, float64)) error {
		var r reading
		var degrees float64
		_, err := fmt.Sscan(line, &r.Place, &r.Year, &degrees)
		emit(r, degrees)
		return err
	})
	warmest := mapreduce.Fold(readings, mapreduce.Max)
	mrtest.Print(warmest.Job("warmest"), "oslo 2023 19.5\noslo 2024 21\noslo 2023 17\nrome 2024 33.5\n")
	// Output:
	// oslo	2024	21.0
	// oslo	2023	19.5
	// rome	2024	33.5
}

// observation has fields that are not exported.
type observation struct {
	place string
	year  int32
}

func (o *observation) Fields(f *mapreduce.Fields) {
	f.String(&o.place)
	f.Desc().Int32(&o.year)
}

// A type with a method Fields, which lists its fields in key order.
func ExampleFields() {
	places := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(observation, struct{})) error {
		var o observation
		_, err := fmt.Sscan(line, &o.place, &o.year)
		emit(o, struct{}{})
		return err
	})
	mrtest.Print(mapreduce.Sort(places).Job("sorted"), "oslo 2023\nrome 2024\noslo 2024\n")
	// Output:
	// oslo	2024
	// oslo	2023
	// rome	2024
}
