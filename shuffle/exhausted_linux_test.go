package shuffle

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestExhausted: a segment that cannot be opened because this machine lacks descriptors is not unreadable, as its map would
// rerun for nothing.
func TestExhausted(t *testing.T) {
	file, _ := smallSegment(t)
	segment := wholePartition(t, file, 0)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	next, err := os.Open(file) // its number is the first free one, which the limit then excludes
	if err != nil {
		t.Fatal(err)
	}
	first := uint64(next.Fd())
	if err := errors.Join(next.Close(), syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: first, Max: before.Max})); err != nil {
		t.Fatal(err)
	}
	_, failed := openFile(t.Context(), segment)
	_, failedBatch := ReadBatch(&Batch{Partitions: []int{0}, Outputs: []BatchOutput{{}}}, BatchOptions{File: file + "-batch"},
		func(wire.JobID, int, int) (string, error) { return file, nil })
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	checkExhausted(t, "a file", failed)
	checkExhausted(t, "a batch of files", failedBatch)
	r, err := openFile(t.Context(), segment)
	if err != nil {
		t.Fatal(err)
	}
	defer r.in.close()
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		refused := &url.Error{Op: "Get", URL: "http://t/", Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}}
		checkExhausted(t, "a connection", r.explain(refused))
		client := &http.Client{Transport: failingTransport{refused.Err}}
		_, err := Fetch(t.Context(), "http://t/", file+"-fetched", FetchOptions{Client: client})
		checkExhausted(t, "a fetch", err)
		_, err = FetchBatch(t.Context(), "http://t", &Batch{Partitions: []int{0}, Outputs: []BatchOutput{{}}}, BatchOptions{File: file + "-batch"}, FetchOptions{Client: client})
		checkExhausted(t, "a batch", err)
	}
	if err := notReadable(wire.Segment{}, syscall.EIO); Exhausted(err) || !isUnreadable(err) {
		t.Errorf("a disk that fails: %v", err)
	}
}

type failingTransport struct{ err error }

func (f failingTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

func isUnreadable(err error) bool {
	_, ok := errors.AsType[*UnreadableError](err)
	return ok
}

func checkExhausted(t *testing.T, what string, err error) {
	t.Helper()
	if !Exhausted(err) || isUnreadable(err) || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("%s: %v", what, err)
	}
}
