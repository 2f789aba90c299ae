package main

import (
	"context"
	"os"
	"strings"
)

// hadoop runs Hadoop's own classes with Recorder.java; dir is for its files.
type hadoop struct{ dir string }

// recorded returns the run of a check with answers of Recorder.java that are recorded in a file. Its input is that
// file, if it exists.
func (h hadoop) recorded(what, file string) func(context.Context) (answers, error) {
	return func(ctx context.Context) (a answers, err error) {
		java, err := compiled(ctx, h.dir, "Recorder", "org.apache.hadoop:hadoop-mapreduce-client-core:")
		if err != nil {
			return a, err
		}
		version, err := java("", "version")
		if err != nil {
			return a, err
		}
		old, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			return a, err
		}
		now, err := java(string(old), what)
		return answers{version: strings.TrimSpace(version), records: map[string]string{file: now}}, err
	}
}
