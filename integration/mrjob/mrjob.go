// Package mrjob has recorded sessions of mrjob with -r hadoop: which commands it calls, in which order, and the answers.
// make compat runs the real mrjob and records them; cmd/mrsubmit.TestMrjob replays them without mrjob and Python.
//
// Recorded texts have DIR for the directory of the session, KEY for mrjob's name of a run, JAR for the jar of Streaming, and
// application_ID and job_ID for the ids of the last job.
package mrjob

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// Session is one run of mrjob.
type Session struct {
	Args     []string                     `json:"args"`               // of the job's program, after -r hadoop
	Files    map[string]string            `json:"files"`              // local files that it uploads; the library mrjob.zip is left out
	Archives map[string]map[string]string `json:"archives,omitempty"` // archives that it uploads: their files, by path
	Calls    []Call                       `json:"calls"`
	Exit     int                          `json:"exit"`
	Out      string                       `json:"out"`            // sorted lines
	Says     []string                     `json:"says,omitempty"` // in its messages about a failure
}

// Call is one call of hadoop.
type Call struct {
	Args     []string                    `json:"args"`
	Exit     int                         `json:"exit"`
	Out      string                      `json:"out,omitempty"`      // of version and -cat; the names of -ls
	Counters map[string]map[string]int64 `json:"counters,omitempty"` // of a job, as mrjob understood them: those that Hadoop has, too
}

// Read reads a recorded session.
func Read(name string) (*Session, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := new(Session)
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// Text is the recorded form.
func (s *Session) Text() (string, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	return string(text) + "\n", err
}

// Patterns of mrjob 0.7.4 for a record, the beginning of counters, a group and a counter.
var (
	record  = regexp.MustCompile(`^\s*(?:.*?)\s+[A-Z]+\s+\S+(?: - |: )(.*)$`)
	begin   = regexp.MustCompile(`^Counters: \d+\s*$`)
	group   = regexp.MustCompile(`^(\s+)(.*)$`)
	counter = regexp.MustCompile(`^(\s+)(.*)=(\d+)\s*$`)
)

// Messages returns the messages of log records as mrjob splits them. Lines that begin no record belong to the one before.
func Messages(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch m := record.FindStringSubmatch(line); {
		case line == "Streaming Command Failed!":
			all = append(all, line)
		case m != nil:
			all = append(all, m[1])
		case len(all) > 0:
			all[len(all)-1] += "\n" + line
		}
	}
	return all
}

// Counters parses the message of counters as mrjob does, and returns the counters that are the same in every run: numbers of
// records, and those of the job itself. It returns nil for other messages.
func Counters(message string) map[string]map[string]int64 {
	lines := strings.Split(message, "\n")
	if !begin.MatchString(lines[0]) {
		return nil
	}
	all := make(map[string]map[string]int64)
	name, indent := "", -1
	for _, line := range lines[1:] {
		if m := counter.FindStringSubmatch(line); m != nil && indent >= 0 && len(m[1]) > indent {
			if n, _ := strconv.ParseInt(m[3], 10, 64); name == "words" || strings.HasSuffix(m[2], "records") || m[2] == "Shuffled Maps " {
				if all[name] == nil {
					all[name] = make(map[string]int64)
				}
				all[name][m[2]] = n
			}
		} else if m := group.FindStringSubmatch(line); m != nil {
			name, indent = m[2], len(m[1])
		}
	}
	return all
}

// Names returns the names in a listing of hadoop fs -ls -R, without directories, as mrjob finds them.
func Names(listing string) string {
	var b strings.Builder
	for line := range strings.Lines(listing) {
		fields := strings.Split(strings.TrimRight(line, "\r\n"), " ")
		for i, f := range fields {
			if len(f) == 5 && f[2] == ':' && fields[0][0] != 'd' {
				b.WriteString(strings.Join(fields[i+1:], " ") + "\n")
			}
		}
	}
	return b.String()
}
