package attemptlog

import (
	"strings"
	"testing"
)

const (
	runtimeStack = "runtime stack:\nruntime.throw({0x4d404b?, 0x256e?})\n\t/go/src/runtime/panic.go:1229 +0x48\n\n"
	goroutine1   = "goroutine 1 gp=0x15b8 m=0 mp=0x59a2c0 [running]:\nruntime.mallocgc(0x1)\n\t/go/src/runtime/malloc.go:1156 +0xd3\nmain.load(0x1)\n\t/job/main.go:9 +0x2\n\n"
	goroutine2   = "goroutine 2 [select]:\nmain.wait()\n\t/job/main.go:3 +0x1\n\n"
	where        = "\ngoroutine 1 gp=0x15b8 m=0 mp=0x59a2c0 [running]:\nmain.load(0x1)\n\t/job/main.go:9 +0x2"
)

func TestFindCrash(t *testing.T) {
	many := strings.Repeat(goroutine2, 10_000)
	for _, c := range []struct{ name, log, cause, text string }{
		{"nothing", "", "", ""},
		{"no crash", "one\ntwo\n", "", ""},
		{"printed by the job", "panic: at the disco\nfatal error: no\nthree\n", "", ""},
		{"panic", "one\npanic: oh\n\ngoroutine 7 [running]:\nmain.f()\n\t/job/main.go:3 +0x1\nexit status 2\n", "panic: oh",
			"panic: oh\n\ngoroutine 7 [running]:\nmain.f()\n\t/job/main.go:3 +0x1\nexit status 2"},
		{"panic of several lines", "panic: oh\n\tno [recovered]\n[signal SIGSEGV: x]\n\n" + goroutine1 + many, "panic: oh; no [recovered]; [signal SIGSEGV: x]",
			"panic: oh\n\tno [recovered]\n[signal SIGSEGV: x]\n" + where},
		{"memory", "fatal error: runtime: out of memory\n\n" + runtimeStack + goroutine1 + many, "fatal error: runtime: out of memory",
			"fatal error: runtime: out of memory\n" + where},
		{"memory, with a prelude", "runtime: out of memory: cannot allocate 8-byte block (3 in use)\nfatal error: out of memory\n\n" + goroutine1 + many,
			"runtime: out of memory: cannot allocate 8-byte block (3 in use); fatal error: out of memory",
			"runtime: out of memory: cannot allocate 8-byte block (3 in use)\nfatal error: out of memory\n" + where},
		{"a signal", "SIGABRT: abort\nPC=0x1\n\n" + goroutine1 + goroutine2, "SIGABRT: abort; PC=0x1", "SIGABRT: abort\nPC=0x1\n" + where},
		{"just after a line of the job", "panic: no\nruntime: no\npanic: own\n\n" + goroutine1, "panic: own", "panic: own\n" + where},
		{"of a child process, then of the worker", "panic: child\n\n" + goroutine2 + "panic: own\n\n" + goroutine1 + many, "panic: own", "panic: own\n" + where},
		{"a line of the job long before", "panic: no\n" + strings.Repeat("line\n", maxPrelude) + "panic: own\n\n" + goroutine1, "panic: own", "panic: own\n" + where},
		{"lines of the runtime in between", "fatal error: x\n\nruntime: g 5: unexpected return pc\n\n" + goroutine1 + "runtime: note\n" + many, "fatal error: x; runtime: g 5: unexpected return pc",
			"fatal error: x\n\nruntime: g 5: unexpected return pc\n" + where},
		{"a long line", strings.Repeat("x", 1<<20) + "\npanic: oh\n\n" + goroutine1, "panic: oh", "panic: oh\n" + where},
		{"a long cause", "panic: " + strings.Repeat("é", 1000) + "\n\n" + goroutine1, "panic: " + strings.Repeat("é", (causeBytes-7)/2) + "…", ""},
		{"cut off", "panic: oh\n\ngoroutine 1 [running]:", "panic: oh", "panic: oh\n\ngoroutine 1 [running]:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := findCrash(strings.NewReader(c.log))
			if got.cause != c.cause || c.text != "" && got.text != c.text {
				t.Errorf("cause %q, want %q\ntext\n%s\nwant\n%s", got.cause, c.cause, got.text, c.text)
			}
			if len(got.text) > lastBytes+len("…") {
				t.Errorf("%d bytes of text", len(got.text))
			}
		})
	}
}
