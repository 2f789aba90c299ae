// Command driven drives four jobs over -input. The third one hangs as long as the input has the line "hang".
package main

import (
	"fmt"

	"github.com/quernmr/quern/mapreduce"
)

func main() { mapreduce.Drive(drive, step) }

func drive(d *mapreduce.Driver) error {
	for i := range 4 {
		lines, err := step.Run(d, i)
		if err != nil {
			return err
		}
		for line := range lines.All(d) {
			fmt.Println("step", i, line)
		}
	}
	return nil
}

var step = mapreduce.Define("step", func(_ *mapreduce.Job, i int) (*mapreduce.Result[string, struct{}], error) {
	return mapreduce.Sort(mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, line string, emit func(string, struct{})) error {
		if line == "hang" && i == 2 {
			<-t.Done()
			return t.Err()
		}
		emit(line, struct{}{})
		return nil
	})), nil
})
