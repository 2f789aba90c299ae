package main

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
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// tlsSorts and tlsFetches are how often the large things are done at most.
const (
	tlsSorts   = 3
	tlsFetches = 5
	fetchBytes = 256 << 20
)

// tls compares two clusters that differ in their certificates alone, each idle while
// the other works, run by run in turn; and the fetch of one partition by itself.
func (b *bench) tls() (rows []string, err error) {
	plain, err := b.cluster()
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	protected, err := b.cluster(func(cfg *processes.Config) { cfg.TLS = true })
	if err != nil {
		return nil, err
	}
	defer protected.Close()
	pair := []*processes.Cluster{plain, protected}
	for _, measure := range []func([]*processes.Cluster) ([]string, error){b.tlsSort, b.tlsSmall} {
		more, err := measure(pair)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	fetches, err := b.tlsFetch()
	return append(rows, fetches...), err
}

// tlsSort sorts the same lines on both; the outputs must be in order, and equal.
func (b *bench) tlsSort(pair []*processes.Cluster) ([]string, error) {
	in := filepath.Join(b.dir, "sort-lines")
	if err := input.Lines(in, b.size); err != nil {
		return nil, err
	}
	took := make([][]time.Duration, len(pair))
	processor := make([]float64, len(pair))
	var want []byte
	for i := range min(b.runs, tlsSorts) + 1 {
		for k, c := range pair {
			out := filepath.Join(b.dir, fmt.Sprintf("sorted%d-%d", i, k))
			before := processorTime(c)
			d, err := timed(c.Command(b.ctx, "mrsubmit", "run", "-D", "mapreduce.job.reduces=3", c.Program("sort"), "-input", in, "-output", out))
			if err != nil {
				return nil, err
			}
			spent := processorTime(c) - before
			sum, err := sortedSum(out, b.size)
			if err == nil && want != nil && !bytes.Equal(sum, want) {
				err = fmt.Errorf("%s differs from the first output", out)
			}
			if err := errors.Join(err, os.RemoveAll(out)); err != nil {
				return nil, err
			}
			if want = sum; i > 0 { // the first of each warms up
				took[k] = append(took[k], d)
				processor[k] += spent
			}
		}
	}
	text := fmt.Sprintf("TLS: sort of %d MB, three trackers", b.size/1_000_000)
	return []string{
		seconds(text+", without", took[0]), seconds("the same with TLS", took[1]),
		row("ratio of the medians", fmt.Sprintf("%.2f", testbed.Median(took[1]).Seconds()/testbed.Median(took[0]).Seconds()), "", "≤ 1.25"),
		row("the same of the processor time of daemons and tasks", fmt.Sprintf("%.2f", processor[1]/processor[0]), "", "–"),
	}, nil
}

func processorTime(c *processes.Cluster) float64 {
	tasks, daemons := c.Processor()
	return tasks + daemons
}

// tlsSmall runs a word count of 1 KB on both.
func (b *bench) tlsSmall(pair []*processes.Cluster) ([]string, error) {
	in := filepath.Join(b.dir, "lines8")
	if err := lines(in, 8); err != nil {
		return nil, err
	}
	took := make([][]time.Duration, len(pair))
	for i := range b.runs + 1 {
		for k, c := range pair {
			out := filepath.Join(b.dir, fmt.Sprintf("tls-small%d-%d", i, k))
			d, err := timed(c.Command(b.ctx, "mrsubmit", "run", c.Program("wordcount"), "-input", in, "-output", out))
			if err != nil {
				return nil, err
			}
			if i > 0 {
				took[k] = append(took[k], d)
			}
		}
	}
	more := float64((testbed.Median(took[1]) - testbed.Median(took[0])).Microseconds()) / 1000
	return []string{
		times("TLS: word count of 1 KB, mrsubmit's start to its end, without", took[0], "–"), times("the same with TLS", took[1], "–"),
		row("difference of the medians", fmt.Sprintf("%.1f ms", more), "", "≤ 5 ms"),
	}, nil
}

// timed runs a command.
func timed(cmd *exec.Cmd) (time.Duration, error) {
	began := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%v: %w\n%s", cmd.Args[1:], err, said)
	}
	return time.Since(began), nil
}

// sortedSum is the hash of an output whose lines are in order, and of so many bytes.
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

// tlsFetch fetches a partition from a shuffle service in this process, into the page cache.
func (b *bench) tlsFetch() ([]string, error) {
	dir := filepath.Join(b.dir, "fetch")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	segment := filepath.Join(dir, "segment")
	if err := writeSegment(dir, segment); err != nil {
		return nil, err
	}
	server, dialer, err := peers(filepath.Join(dir, "certs"))
	if err != nil {
		return nil, err
	}
	var rates [2][]float64
	for i := range min(b.runs, tlsFetches) + 1 {
		for k := range rates {
			var s, d *tls.Config
			if k == 1 {
				s, d = server, dialer
			}
			rate, err := fetchRate(b.ctx, segment, filepath.Join(dir, "fetched"), s, d)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				rates[k] = append(rates[k], rate)
			}
		}
	}
	text := func(list []float64) (middle, worst string) {
		slices.Sort(list)
		return fmt.Sprintf("%.0f MB/s", list[len(list)/2]), fmt.Sprintf("%.0f MB/s", list[0])
	}
	m0, w0 := text(rates[0])
	m1, w1 := text(rates[1])
	name := fmt.Sprintf("TLS: one fetch of %d MB, verified and written, both ends in one process, without", fetchBytes>>20)
	return []string{row(name, m0, w0, "–"), row("the same with TLS", m1, w1, "–")}, nil
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

// peers are the two ends of a connection between task trackers.
func peers(dir string) (server, dialer *tls.Config, err error) {
	now := time.Now()
	authority, err := identity.OpenAuthority(filepath.Join(dir, "authority"), now)
	if err != nil {
		return nil, nil, err
	}
	var both [2]*identity.Identity
	for i, name := range []string{"a", "b"} {
		own := filepath.Join(dir, name)
		if err := authority.Issue(own, identity.Peer{Role: identity.TaskTracker, Name: name}, now, now.Add(24*time.Hour)); err != nil {
			return nil, nil, err
		}
		if both[i], err = identity.Load(own, identity.TaskTracker, nil); err != nil {
			return nil, nil, err
		}
	}
	return both[0].Server(identity.TaskTracker), both[1].Dialer(identity.TaskTracker), nil
}

// fetchRate is the MB of one fetch a second.
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
	s := &http.Server{Handler: shuffle.Handler(func(wire.JobID, int, int) (string, error) { return segment, nil })}
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

// seconds makes a row of long durations.
func seconds(name string, list []time.Duration) string {
	slices.Sort(list)
	return row(name, fmt.Sprintf("%.2f s", testbed.Median(list).Seconds()), fmt.Sprintf("%.2f s", list[len(list)-1].Seconds()), "–")
}
