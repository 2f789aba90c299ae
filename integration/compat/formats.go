package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// formatJobs records the inputs and outputs of Hadoop's jobs over SequenceFiles and Avro files; dir is for its files.
type formatJobs struct{ dir string }

func (f formatJobs) recorded(ctx context.Context) (a answers, err error) {
	dir := filepath.Join(f.dir, "formats")
	if err := jobsDir(dir); err != nil {
		return a, err
	}
	java, err := compiled(ctx, dir, "HadoopFormats", append(minicluster.LocalRunner(), "org.apache.avro:avro-mapred:1.11.4")...)
	if err != nil {
		return a, err
	}
	a = answers{version: hadoopVersion, records: make(map[string]string)}
	for what, file := range map[string]string{"sequence": "in.seq", "avro": "in.avro"} {
		testdata := "formats/" + what + "/testdata/"
		printed, err := java("", what, dir)
		if err != nil {
			return a, err
		}
		a.records[testdata+"jobs.txt"] = "# Word counts and sorts of " + file + " by Hadoop's local runner: properties, and the records of each file.\n\n" + printed
		in, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return a, err
		}
		a.records[testdata+file] = string(in)
	}
	return a, nil
}
