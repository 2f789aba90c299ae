package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// tlsSorts and tlsFetches limit the repetitions, because one takes long.
const (
	tlsSorts   = 3
	tlsFetches = 5
	fetchBytes = 256 << 20
)

// tls alternates runs on two clusters that differ only in TLS. It also compares the fetch of
// one partition.
func (b *bench) tls() error {
	var pair [2]*testbed.Cluster
	for k := range pair {
		c, err := b.cluster(k == 1)
		if err != nil {
			return err
		}
		defer c.Close()
		pair[k] = c
	}
	if err := b.tlsSort(pair); err != nil {
		return err
	}
	if err := b.tlsSmall(pair); err != nil {
		return err
	}
	return b.tlsFetch(pair[1])
}

// tlsSort sorts the same lines on both clusters. The outputs must be sorted, and equal.
func (b *bench) tlsSort(pair [2]*testbed.Cluster) error {
	in := b.Path("sort-lines")
	if err := input.Lines(in, b.Bytes); err != nil {
		return err
	}
	var processor [2]float64
	var want []byte
	sort := func(k int) func() (time.Duration, error) {
		round := 0
		return func() (time.Duration, error) {
			c, out := pair[k], pair[k].NewPath("sorted")
			before := processorTime(c)
			took, err := c.Run(b.Ctx, "-D", "mapreduce.job.reduces=3", c.Program("sort"), "-input", in, "-output", out)
			if err != nil {
				return 0, err
			}
			if round++; round > 1 { // Alternate drops the first round too
				processor[k] += processorTime(c) - before
			}
			sum, err := sortedSum(out, b.Bytes)
			if err == nil && want != nil && !bytes.Equal(sum, want) {
				err = fmt.Errorf("%s differs from the first output", out)
			}
			want = sum
			return took, errors.Join(err, os.RemoveAll(out))
		}
	}
	took, err := testbed.Alternate(1, min(b.Runs, tlsSorts), sort(0), sort(1))
	if err != nil {
		return err
	}
	printTimes(fmt.Sprintf("TLS: sort of %d MB, three trackers, without", b.Bytes/1_000_000), took[0], testbed.Seconds, "–")
	printTimes("the same with TLS", took[1], testbed.Seconds, "–")
	testbed.Row("ratio of the medians", testbed.Ratio(testbed.Median(took[1]), testbed.Median(took[0])), "", "≤ 1.25")
	testbed.Row("ratio of the processor times of daemons and tasks", testbed.Ratio(processor[1], processor[0]), "", "–")
	return nil
}

func processorTime(c *testbed.Cluster) float64 {
	tasks, daemons := c.Processor()
	return tasks + daemons
}

// tlsSmall runs a word count of 1 KB on both clusters.
func (b *bench) tlsSmall(pair [2]*testbed.Cluster) error {
	in, err := b.writeLines(8)
	if err != nil {
		return err
	}
	count := func(c *testbed.Cluster) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			return c.Run(b.Ctx, c.Program("wordcount"), "-input", in, "-output", c.NewPath("small"))
		}
	}
	took, err := testbed.Alternate(1, b.Runs, count(pair[0]), count(pair[1]))
	if err != nil {
		return err
	}
	more := testbed.Median(took[1]) - testbed.Median(took[0])
	printTimes("TLS: word count of 1 KB, mrsubmit's start to its end, without", took[0], testbed.Millis, "–")
	printTimes("the same with TLS", took[1], testbed.Millis, "–")
	testbed.Row("difference of the medians", fmt.Sprintf("%.1f ms", more.Seconds()*1000), "", "≤ 5 ms")
	return nil
}

// sortedSum returns the hash of an output. It fails if the output is not sorted or has another
// size.
func sortedSum(dir string, size int64) ([]byte, error) {
	parts, err := filepath.Glob(filepath.Join(dir, "part-*")) // in order
	if err != nil {
		return nil, err
	}
	hash, read := sha256.New(), int64(0)
	var last, line [input.LineBytes]byte
	for _, part := range parts {
		f, err := os.Open(part)
		if err != nil {
			return nil, err
		}
		in := bufio.NewReaderSize(io.TeeReader(f, hash), 1<<20)
		for err == nil {
			if _, err = io.ReadFull(in, line[:]); err == nil && bytes.Compare(last[:], line[:]) > 0 {
				err = errors.New("it is not in order")
			}
			if err == nil {
				read += int64(len(line))
				last = line
			}
		}
		f.Close()
		if err != io.EOF {
			return nil, fmt.Errorf("read %s: %w", part, err)
		}
	}
	if want := size / input.LineBytes * input.LineBytes; read != want {
		return nil, fmt.Errorf("%s has %d bytes, want %d", dir, read, want)
	}
	return hash.Sum(nil), nil
}

// tlsFetch fetches a partition from a shuffle service in this process into a file.
func (b *bench) tlsFetch(protected *testbed.Cluster) error {
	dir := b.Path("fetch")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	segment := filepath.Join(dir, "segment")
	if err := writeSegment(dir, segment); err != nil {
		return err
	}
	server, dialer, err := tlsConfigs(protected)
	if err != nil {
		return err
	}
	fetch := func(server, dialer *tls.Config) func() (float64, error) {
		return func() (float64, error) {
			return fetchRate(b.Ctx, segment, filepath.Join(dir, "fetched"), server, dialer)
		}
	}
	rates, err := testbed.Alternate(1, min(b.Runs, tlsFetches), fetch(nil, nil), fetch(server, dialer))
	if err != nil {
		return err
	}
	names := []string{fmt.Sprintf("TLS: one fetch of %d MB, verified and written, both ends in one process, without", fetchBytes>>20), "the same with TLS"}
	for k, name := range names {
		testbed.Row(name, fmt.Sprintf("%.0f MB/s", testbed.Median(rates[k])), fmt.Sprintf("%.0f MB/s", slices.Min(rates[k])), "–")
	}
	return nil
}

func writeSegment(dir, file string) error {
	c, err := shuffle.NewCollector(shuffle.Config{Partitions: 1, Memory: 2 * fetchBytes, Dir: dir, File: file})
	if err != nil {
		return err
	}
	defer c.Discard()
	value := make([]byte, 90)
	for n := range fetchBytes / 100 {
		if err := c.Collect(0, fmt.Appendf(nil, "%010d", n), value); err != nil {
			return err
		}
	}
	_, err = c.Close()
	return err
}

// tlsConfigs returns the TLS settings of both ends of a connection between two task trackers.
func tlsConfigs(c *testbed.Cluster) (server, dialer *tls.Config, err error) {
	var both [2]*identity.Identity
	for i := range both {
		certs := c.Certs(identity.TaskTracker, c.TaskTrackers[i].ID)
		if both[i], err = identity.Load(certs, identity.TaskTracker, nil); err != nil {
			return nil, nil, err
		}
	}
	return both[0].Server(identity.TaskTracker), both[1].Dialer(identity.TaskTracker), nil
}

// fetchRate measures one fetch in MB/s.
func fetchRate(ctx context.Context, segment, to string, server, dialer *tls.Config) (float64, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	base := "http://" + listener.Addr().String()
	if server != nil {
		base = "https://" + listener.Addr().String()
		listener = tls.NewListener(listener, server)
	}
	s := &http.Server{Handler: shuffle.Handler(func(wire.JobID, int, int) (string, error) { return segment, nil }, new(meter.Count))}
	go s.Serve(listener)
	defer s.Close()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: dialer, DisableCompression: true}}
	defer client.CloseIdleConnections()
	began := time.Now()
	got, err := shuffle.Fetch(ctx, shuffle.URL(base, wire.JobID{Start: 1, N: 1}, 0, 1000, 0), to, shuffle.FetchOptions{Client: client})
	if err != nil {
		return 0, err
	}
	rate := float64(got.Segment.Length) / 1e6 / time.Since(began).Seconds()
	return rate, os.Remove(to)
}
