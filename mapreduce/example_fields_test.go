package mapreduce_test

import (
	"fmt"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// A reading is ordered by place, then from the latest year to the first.
type reading struct {
	Place string
	Year  int32
}

func (r *reading) Fields(f *mapreduce.Fields) {
	f.String(&r.Place)
	f.Desc().Int32(&r.Year)
}

// Your own type as a key: its method Fields lists its fields in key order. Encoding,
// sorting, text and partition need nothing else.
func ExampleFields() {
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
