package wire

import (
	"strings"
	"time"
)

// SessionLease is how long the session of a driver lives after its last change. A running driver
// changes it often.
const SessionLease = 24 * time.Hour

// Step is one job of a program that drives jobs: a definition and the values of one run.
type Step struct {
	Definition string `msgpack:"Definition"`
	Params     []byte `msgpack:"Params"`           // JSON
	Result     string `msgpack:"Result"`           // URL of the directory for the result, unless the definition names an output
	Output     string `msgpack:"Output,omitempty"` // URL of the program's -output, which this step or a later one writes; empty: none
}

// Session returns the name of the directory of the session in which the step's result is, or "".
func (s *Step) Session() string {
	results := s.Result[:max(strings.LastIndexByte(s.Result, '/'), 0)]
	session, ok := strings.CutSuffix(results, "/"+SessionResults)
	if !ok {
		return ""
	}
	return session[strings.LastIndexByte(session, '/')+1:]
}

// Between a program that drives jobs and its client, which submits the jobs. Only one build of both
// speaks it: a program begins with DriveHello, and its client refuses another protocol.
type (
	// DriveHello is the program's first message.
	DriveHello struct {
		Protocol int `msgpack:"Protocol"`
	}

	// DriveBegin answers DriveHello.
	DriveBegin struct {
		Sessions string `msgpack:"Sessions"`        // what the URL of a session has before its name
		Sweep    bool   `msgpack:"Sweep,omitempty"` // no job tracker removes expired sessions there: the program does
	}

	// DriveRun asks the client to run a submission. Several may run at once.
	DriveRun struct {
		Run        int        `msgpack:"Run"`
		Submission Submission `msgpack:"Submission"`
		Find       bool       `msgpack:"Find,omitempty"` // an earlier process may have submitted it: wait for its jobs, and run no others
	}

	// DriveKill asks the client to kill the jobs of a run. DriveEnded follows.
	DriveKill struct {
		Run int `msgpack:"Run"`
	}

	// DriveEnded reports the end of a run.
	DriveEnded struct {
		Run   int        `msgpack:"Run"`
		Jobs  []EndedJob `msgpack:"Jobs"`
		Error string     `msgpack:"Error"` // why the jobs did not run, or what became of them is not known
	}

	// DriveFailed says why the program ends with a failure. It is the last message.
	DriveFailed struct {
		Error string `msgpack:"Error"`
	}

	// EndedJob is what a driver sees of an ended job, as in JobStatus.
	EndedJob struct {
		ID       JobID    `msgpack:"ID"`
		State    State    `msgpack:"State"`
		Counters Counters `msgpack:"Counters"`
		Error    string   `msgpack:"Error"`
	}
)

// DriveProtocol is the version of these messages.
const DriveProtocol = 4

func (*DriveHello) number() byte  { return 29 }
func (*DriveBegin) number() byte  { return 30 }
func (*DriveRun) number() byte    { return 31 }
func (*DriveKill) number() byte   { return 32 }
func (*DriveEnded) number() byte  { return 33 }
func (*DriveFailed) number() byte { return 34 }
