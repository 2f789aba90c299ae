//go:build unix

package embedded

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/quernmr/quern/tasktracker/attemptlog"
	trackercore "github.com/quernmr/quern/tasktracker/core"
)

// prints copies what attempts print: each line after the attempt's id. The attempts' logs stay while it runs.
type prints struct {
	dir   string // of the cluster
	to    io.Writer
	shown map[string]int64 // bytes that attempts have written, by log, up to the last printed line
	quit  chan struct{}
	ended chan struct{}
}

// printEvery is the time between two looks at the logs.
const printEvery = 200 * time.Millisecond

func startPrints(dir string, to io.Writer) *prints {
	p := &prints{dir: dir, to: to, shown: make(map[string]int64), quit: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		tick := time.NewTicker(printEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.copy(false)
			case <-p.quit:
				p.copy(true)
				return
			}
		}
	}()
	return p
}

// stop prints the rest of the logs, when no attempt runs any more.
func (p *prints) stop() {
	close(p.quit)
	<-p.ended
}

// copy prints the new lines of all logs, and at the end also a last line without its end.
func (p *prints) copy(last bool) {
	for _, stream := range []string{"stdout", "stderr"} {
		logs, _ := filepath.Glob(filepath.Join(p.dir, trackerDir+"*", trackercore.LogsDir, "*", "*", stream)) // the pattern is well-formed
		for _, name := range logs {
			p.copyLog(name, last)
		}
	}
}

func (p *prints) copyLog(name string, last bool) {
	text, err := attemptlog.Open(name)
	if err != nil {
		return // it is not there yet, or not a log
	}
	defer text.Close()
	from := text.Find(p.shown[name])
	added := make([]byte, text.Size()-from)
	n, err := text.ReadAt(added, from)
	if added = added[:n]; err != nil && err != io.EOF {
		return
	}
	if !last {
		added = added[:bytes.LastIndexByte(added, '\n')+1]
	}
	p.shown[name] = text.End() - (text.Size() - from - int64(len(added)))
	attempt := filepath.Base(filepath.Dir(name))
	for line := range bytes.Lines(added) {
		fmt.Fprintf(p.to, "%s: %s\n", attempt, bytes.TrimSuffix(line, []byte{'\n'}))
	}
}
