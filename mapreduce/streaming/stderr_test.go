package streaming

import (
	"io"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/runtime"
)

// repeated is an endless text.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		copied := copy(p[n:], r.text[r.at:])
		n, r.at = n+copied, (r.at+copied)%len(r.text)
	}
	return n, nil
}

// told returns what reads standard error for a task, without a log.
func told(t *runtime.Task) *stderr {
	return &stderr{task: t, to: io.Discard, prefix: []byte("reporter:"), counts: true, nameMax: 64, groupMax: 128}
}

// TestStderrMemory: the memory for standard error does not grow with its length, nor with that of its lines.
func TestStderrMemory(t *testing.T) {
	const size = 64 << 20
	for _, text := range []string{"0123456789abcde\n", strings.Repeat("x", 1000) + "\r\n", "x", "\xff\r"} {
		membound.Bound{Free: 1 << 20}.Check(t, size, func() {
			s := told(&runtime.Task{})
			s.read(io.LimitReader(&repeated{text: text}, size))
			if last := s.last(); len(last) > tailMax || strings.Count(last, "\n") >= tailLines {
				t.Errorf("of %.20q %d bytes are kept", text, len(last))
			}
		})
	}
}

// names has a report for each of many counters.
type names struct {
	n    int
	line strings.Reader
}

func (r *names) Read(p []byte) (int, error) {
	if r.line.Len() == 0 {
		r.n++
		r.line.Reset("reporter:counter:group " + strconv.Itoa(r.n) + ",name " + strconv.Itoa(r.n) + ",1\n")
	}
	return r.line.Read(p)
}

// TestCountersMemory: counters beyond the limits are not kept.
func TestCountersMemory(t *testing.T) {
	task := new(runtime.Task)
	s := told(task)
	var before, after goruntime.MemStats
	goruntime.GC()
	goruntime.ReadMemStats(&before)
	s.read(io.LimitReader(new(names), 100<<20)) // more than two million
	goruntime.GC()
	goruntime.ReadMemStats(&after)
	if after.HeapAlloc > before.HeapAlloc+1<<20 {
		t.Errorf("the counters take %d bytes", after.HeapAlloc-before.HeapAlloc)
	}
	if n := task.Counter("group 1", "name 1").Value(); n != 1 {
		t.Errorf("the first counter is %d", n)
	}
	goruntime.KeepAlive(s)
}
