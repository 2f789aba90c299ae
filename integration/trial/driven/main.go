// Command driven drives four jobs over -input. The third one hangs as long as the input has the line "hang". With
// -output the last one keeps its result there, in the format Binary.
package main

import (
	"fmt"

	"github.com/quernmr/quern/mapreduce"
)

func main() { mapreduce.Drive(drive, step) }

func drive(d *mapreduce.Driver) error {
	kept, _ := d.Output() // without -output it stays in the session
	for i := range 4 {
		p := params{Number: i}
		if i == 3 {
			p.Output = kept
		}
		lines, err := step.Run(d, p)
		if err != nil {
			return err
		}
		for line := range lines.All(d) {
			fmt.Println("step", i, line)
		}
	}
	return nil
}

type params struct {
	Number int
	Output string
}

var step = mapreduce.Define("step", func(job *mapreduce.Job, p params) (*mapreduce.Result[string, struct{}], error) {
	job.Output, job.Format = p.Output, mapreduce.Binary{}
	return mapreduce.Sort(mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, line string, emit func(string, struct{})) error {
		if line == "hang" && p.Number == 2 {
			<-t.Done()
			return t.Err()
		}
		emit(line, struct{}{})
		return nil
	})), nil
})
