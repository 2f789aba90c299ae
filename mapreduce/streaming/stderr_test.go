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

// TestShorten: a long name becomes a character shorter than the limit, as Java counts characters, and no letter is cut.
func TestShorten(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{strings.Repeat("x", 65), strings.Repeat("x", 63)},
		{strings.Repeat("я", 64), strings.Repeat("я", 64)},
		{strings.Repeat("я", 62) + "abc", strings.Repeat("я", 62) + "a"},
		{strings.Repeat("𝄞", 32), strings.Repeat("𝄞", 32)},
		{strings.Repeat("𝄞", 33), strings.Repeat("𝄞", 31)},
		{"x" + strings.Repeat("𝄞", 32), "x" + strings.Repeat("𝄞", 31)},
	} {
		if got := shorten(c.name, 64); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
	task := new(runtime.Task)
	s := told(task)
	first, second := strings.Repeat("я", 40)+"a", strings.Repeat("я", 40)+"b"
	s.read(strings.NewReader("reporter:counter:g," + first + ",1\nreporter:counter:g," + second + ",2\n"))
	if a, b := task.Counter("g", first).Value(), task.Counter("g", second).Value(); a != 1 || b != 2 {
		t.Errorf("two counters are %d and %d", a, b)
	}
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

// TestStderrLog: the log has all that is no report, in its order, and it is not written line by line.
func TestStderrLog(t *testing.T) {
	var log writes
	s := told(&runtime.Task{})
	s.to = &log
	long := strings.Repeat("x", reportMax+10)
	lines := strings.Repeat("0123456789abcde\n", 100_000)
	s.read(strings.NewReader("a\r\nreporter:status:x\n\nreporter:no\n" + long + "\n" + lines + "b\nreporter:counter:g,n,1\nend"))
	want := "a\r\n\ncannot use the line \"reporter:no\": want counter:GROUP,NAME,AMOUNT or status:TEXT after the prefix\n" + long + "\n" + lines + "b\nend"
	if got := log.String(); got != want {
		t.Errorf("%d bytes are logged, want %d: %.200q", len(got), len(want), got)
	}
	if log.n > 200 {
		t.Errorf("100000 lines are logged with %d writes", log.n)
	}
	if got := s.last(); !strings.HasSuffix(got, "\n0123456789abcde\nb\nend") || strings.Count(got, "\n") != tailLines-1 {
		t.Errorf("the last lines are %q", got)
	}
}

// writes counts writes.
type writes struct {
	strings.Builder
	n int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return w.Builder.Write(p)
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
