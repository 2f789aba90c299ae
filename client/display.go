package client

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/quernmr/quern/wire"
)

const (
	redrawPause = 100 * time.Millisecond // minimum time between two redraws of a terminal
	linePause   = time.Second            // not on a terminal: minimum time between two lines about a job
	waitPause   = 2 * time.Second        // minimum time that a job waits before the display shows the reason
)

// maxShown is the maximum number of jobs that are drawn at once, so that they fit on a screen.
const maxShown = 4

// Display shows running jobs, and reports each job at its end. On a terminal it redraws a block of
// lines in place. Otherwise it prints a line per change, at most one a second for each job.
//
// It is not safe for concurrent use.
type Display struct {
	out     io.Writer
	width   func() int
	outputs map[wire.JobID]string
	started time.Time
	brief   bool // one line about a job that succeeds soon, and the first line of an error
	quiet   bool // only reports of jobs that do not succeed
	silent  bool // with quiet: no reports

	shown   map[wire.JobID]*jobOutput
	warned  map[wire.FlowID]bool // flows with a printed warning about a deadline or SLA
	drawn   int                  // number of lines of the block on the terminal
	drawnAt time.Time            // when the block was drawn
}

// jobOutput records the output about a job so far.
type jobOutput struct {
	submitted  bool      // "submitted" was printed
	line       string    // last line of progress
	lineAt     time.Time // when line was printed
	ended      bool      // its report was printed
	troubles   int       // number of troubles that were printed
	waits      string    // WaitReason of the last status
	waitsSince time.Time // time of the first status with that reason
	warned     bool      // that it will miss its deadline or SLA was printed

	elapsed time.Duration // from the last status
	began   time.Time     // when the job was submitted, on our clock
}

// NewDisplay makes a Display on out. If out is a terminal, width returns its number of columns;
// otherwise width is nil. Outputs has the URLs to print when jobs succeed.
func NewDisplay(out io.Writer, width func() int, outputs map[wire.JobID]string, now time.Time) *Display {
	return &Display{out: out, width: width, outputs: outputs, started: now, shown: make(map[wire.JobID]*jobOutput), warned: make(map[wire.FlowID]bool)}
}

// Update shows the jobs at the time now.
func (d *Display) Update(now time.Time, jobs []wire.JobStatus) {
	var fixed bytes.Buffer
	for i := range jobs {
		d.outputOf(&jobs[i])
	}
	for i := range jobs {
		if !d.quiet {
			d.writeLines(&fixed, now, &jobs[i])
		} else if s := d.outputOf(&jobs[i]); jobs[i].State.Ended() && !s.ended {
			if s.ended = true; jobs[i].State != wire.Succeeded && !d.silent {
				d.report(&fixed, &jobs[i])
			}
		}
	}
	if d.quiet {
		d.out.Write(fixed.Bytes())
		return
	}
	d.paint(now, fixed.Bytes(), jobs)
}

// writeLines writes the lines about a job that stay on the screen.
func (d *Display) writeLines(b *bytes.Buffer, now time.Time, job *wire.JobStatus) {
	s := d.outputOf(job)
	if s.began.IsZero() || job.Elapsed != s.elapsed {
		s.elapsed, s.began = job.Elapsed, now.Add(-job.Elapsed)
	}
	if s.ended {
		return
	}
	if !s.submitted {
		s.submitted = true
		if d.brief {
			s.lineAt = now
		} else {
			fmt.Fprintf(b, "%v %s submitted\n", job.ID, OneLine(job.Name))
		}
	}
	for _, text := range job.Troubles[min(s.troubles, len(job.Troubles)):] {
		if first, _, _ := strings.Cut(text, "\n"); !endsWith(job.Error, first) { // otherwise the report prints it
			fmt.Fprintf(b, "%v  %s\n", job.ID, OneLine(first))
		}
	}
	s.troubles = max(s.troubles, len(job.Troubles))
	d.warn(b, now, job)
	if d.width == nil && (!job.State.Ended() || job.State == wire.Succeeded && !d.brief) {
		mayPrint := s.lineAt.IsZero() || now.Sub(s.lineAt) >= linePause || job.State.Ended()
		line := plainLine(job)
		if waits := s.waiting(now, job); waits != "" {
			line += ", waits " + waits
		}
		if mayPrint && line != s.line {
			s.line, s.lineAt = line, now
			if end := endText(job, now.Sub(s.began), shortTime); end != "" && job.State == wire.Running {
				line += ", " + end
			}
			fmt.Fprintf(b, "%v  %s\n", job.ID, line)
		}
	}
	if job.State.Ended() {
		s.ended = true
		d.report(b, job)
	}
}

// warn writes once that a job will miss its deadline or a step of its SLA. The jobs of a flow have the same
// ones: only the first job that misses them is named.
func (d *Display) warn(b *bytes.Buffer, now time.Time, job *wire.JobStatus) {
	s := d.outputOf(job)
	miss := missText(job, now.Sub(s.began))
	if miss == "" || s.warned || d.warned[job.Flow] {
		return
	}
	s.warned = true
	if !job.Flow.IsZero() {
		d.warned[job.Flow] = true
	}
	fmt.Fprintf(b, "%v  %s\n", job.ID, miss)
}

// endsWith reports whether the first line of text is the trouble, or ends with it as its cause.
func endsWith(text, trouble string) bool {
	first, _, _ := strings.Cut(text, "\n")
	before, ok := strings.CutSuffix(first, trouble)
	return ok && (before == "" || strings.HasSuffix(before, " "))
}

// waiting returns why a job that has begun waits, if it has waited for waitPause.
func (s *jobOutput) waiting(now time.Time, job *wire.JobStatus) string {
	if job.WaitReason != s.waits {
		s.waits, s.waitsSince = job.WaitReason, now
	}
	if job.State == wire.Waiting || job.State.Ended() || now.Sub(s.waitsSince) < waitPause {
		return ""
	}
	return OneLine(job.WaitReason)
}

// Note prints a line.
func (d *Display) Note(text string) {
	var b bytes.Buffer
	d.erase(&b)
	b.WriteString(text + "\n")
	d.out.Write(b.Bytes())
	d.drawnAt = time.Time{}
}

// Close erases the block, so that the next output takes its place.
func (d *Display) Close() {
	var b bytes.Buffer
	d.erase(&b)
	d.out.Write(b.Bytes())
}

func (d *Display) outputOf(job *wire.JobStatus) *jobOutput {
	s := d.shown[job.ID]
	if s == nil {
		s = new(jobOutput)
		d.shown[job.ID] = s
	}
	return s
}

// paint writes fixed lines, and the block below them, in one write.
func (d *Display) paint(now time.Time, fixed []byte, jobs []wire.JobStatus) {
	var b bytes.Buffer
	if d.width == nil {
		b.Write(fixed)
	} else if len(fixed) > 0 || now.Sub(d.drawnAt) >= redrawPause {
		d.erase(&b)
		b.Write(fixed)
		width := max(d.width(), 20)
		for _, line := range d.block(now, jobs) {
			b.WriteString(truncate(line, width-1) + "\n")
			d.drawn++
		}
		d.drawnAt = now
	}
	if b.Len() > 0 {
		d.out.Write(b.Bytes())
	}
}

func (d *Display) erase(b *bytes.Buffer) {
	if d.drawn > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r\x1b[J", d.drawn)
	}
	d.drawn = 0
}

// block returns the lines for jobs that have not ended.
func (d *Display) block(now time.Time, jobs []wire.JobStatus) []string {
	var lines []string
	drawn, more := 0, 0
	for i := range jobs {
		job := &jobs[i]
		switch {
		case job.State.Ended():
		case job.State == wire.Waiting && len(jobs) > 1, drawn == maxShown:
			more++
		default:
			drawn++
			lines = append(lines, d.jobLines(now, job)...)
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%d more to come", more))
	}
	return lines
}

func (d *Display) jobLines(now time.Time, job *wire.JobStatus) []string {
	head := fmt.Sprintf("%v %s  %s", job.ID, OneLine(job.Name), stateText(job))
	s := d.outputOf(job)
	if waits := s.waiting(now, job); waits != "" {
		head += ", waits " + waits
	}
	head += "  " + shortTime(now.Sub(d.started))
	for _, text := range []string{endText(job, now.Sub(s.began), shortTime), missText(job, now.Sub(s.began))} {
		if text != "" {
			head += ", " + text
		}
	}
	lines := []string{head}
	if job.State != wire.Running {
		return lines
	}
	for _, p := range phases(job) {
		lines = append(lines, phaseLine(p))
	}
	return lines
}

// report writes the result of an ended job.
func (d *Display) report(b *bytes.Buffer, job *wire.JobStatus) {
	if d.shown[job.StoppedBy] != nil { // the report of that job has the reason
		fmt.Fprintf(b, "%v %s %v after %s, with %v\n", job.ID, OneLine(job.Name), job.State, wallTime(job.Elapsed), job.StoppedBy)
		return
	}
	fmt.Fprintf(b, "%v %s %v after %s\n", job.ID, OneLine(job.Name), job.State, wallTime(job.Elapsed))
	if job.Error != "" && job.State != wire.Succeeded {
		shown := *job
		if d.brief { // the program gets the whole error, and prints it
			shown.Error, _, _ = strings.Cut(shown.Error, "\n")
		}
		writeError(b, &shown)
	}
	if job.State != wire.Succeeded {
		return
	}
	if !d.brief {
		PrintCounters(b, job.Counters)
	}
	writeGivenUp(b, job)
	if output := d.outputs[job.ID]; output != "" {
		fmt.Fprintf(b, "output: %s\n", output)
	}
}

// PrintStatus writes the state, progress and errors of a job.
func PrintStatus(w io.Writer, job *wire.JobStatus) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %s  %s  %s", job.ID, OneLine(job.Name), stateText(job), shortTime(job.Elapsed))
	for _, text := range []string{endText(job, job.Elapsed, Duration), MissText(job)} {
		if text != "" {
			b.WriteString(", " + text)
		}
	}
	b.WriteByte('\n')
	if job.State == wire.Running || job.State == wire.Succeeded {
		for _, p := range phases(job) {
			fmt.Fprintln(&b, phaseLine(p))
		}
	}
	for _, line := range SkewTexts(job) {
		fmt.Fprintf(&b, "  skew: %s\n", line)
	}
	if text := SlotTimeText(job); text != "" {
		fmt.Fprintf(&b, "  slot time %s\n", text)
	}
	if hasSettings(job) {
		fmt.Fprintf(&b, "  %s\n", SettingsText(job))
	}
	if job.WaitReason != "" && job.State != wire.Waiting && !job.State.Ended() {
		fmt.Fprintf(&b, "  waits %s\n", OneLine(job.WaitReason))
	}
	for _, trouble := range job.Troubles {
		first, _, _ := strings.Cut(trouble, "\n")
		fmt.Fprintf(&b, "  trouble: %s\n", OneLine(first))
	}
	writeGivenUp(&b, job)
	if job.Error != "" && job.State != wire.Succeeded {
		writeError(&b, job)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// phaseLine returns a line about a phase's progress.
func phaseLine(p phase) string {
	parts := []string{fmt.Sprintf("  %-7s %3d%%", p.name, p.percent), bytesText(p), tasksText(p.tasks)}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(parts, "  ")
}

// writeGivenUp writes which tasks were given up, and why.
func writeGivenUp(w io.Writer, job *wire.JobStatus) {
	if job.GivenUpTasks == "" {
		return
	}
	fmt.Fprintf(w, "  given up, so their records are missing in the output: %s\n", OneLine(job.GivenUpTasks))
	for _, cause := range job.GivenUp {
		first, _, _ := strings.Cut(cause, "\n")
		fmt.Fprintf(w, "    %s\n", OneLine(first))
	}
	if n := job.Maps.GivenUp + job.Reduces.GivenUp - len(job.GivenUp); n > 0 {
		fmt.Fprintf(w, "    and %d more\n", n)
	}
}

// writeError writes the lines of a job's error, or the reason of its kill, indented.
func writeError(w io.Writer, job *wire.JobStatus) {
	text := job.Error
	if job.State == wire.Killed {
		text = "reason: " + text
	}
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		fmt.Fprintf(w, "    %s\n", Visible(line))
	}
}

// truncate shortens a line to the width of a terminal, so that it does not wrap.
func truncate(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	return string([]rune(line)[:width])
}

// OneLine replaces control characters, which would move the cursor.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, text)
}
