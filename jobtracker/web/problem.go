package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
)

// Error is an error in an answer. errors.Is finds the sentinel of its code.
type Error struct {
	Code   string `json:"code"`
	Text   string `json:"error"`
	Leader string `json:"leader,omitempty"` // id of the leader, if known
	Addr   string `json:"addr,omitempty"`   // host:port of its API
	// Untouched: the request was refused before it could have an effect.
	Untouched bool `json:"untouched,omitempty"`
	// RetrySeconds: with the code busy, how long to wait before the request is repeated.
	RetrySeconds int `json:"retrySeconds,omitempty"`
}

func (e *Error) Error() string { return e.Text }

// Is reports whether target is the sentinel of the error's code.
func (e *Error) Is(target error) bool {
	for _, k := range errorKinds() {
		if k.code == e.Code && k.sentinel != nil {
			return target == k.sentinel
		}
	}
	return false
}

const (
	codeNotLeader  = "not-leader"
	codeBadRequest = "bad-request"
	codeNotFound   = "not-found"
	codeForbidden  = "forbidden"
	codeTooLarge   = "too-large"
	codeBusy       = "busy"
	codeNoVoters   = "no-voters"
	codeStopped    = "stopped"
	codeTimeout    = "timeout"
	codeInternal   = "internal"
)

// badRequest refuses a malformed request.
func badRequest(text string) *Error {
	return &Error{Code: codeBadRequest, Text: text, Untouched: true}
}

// errorKind is a code with its HTTP status and sentinel.
type errorKind struct {
	code     string
	status   int
	sentinel error
}

func errorKinds() []errorKind {
	return []errorKind{
		{codeNotLeader, http.StatusMisdirectedRequest, core.ErrNotLeader},
		{"unknown-job", http.StatusNotFound, admission.ErrUnknownJob},
		{"job-ended", http.StatusConflict, admission.ErrJobEnded},
		{"job-committing", http.StatusConflict, admission.ErrJobCommitting},
		{"bad-submission", http.StatusBadRequest, admission.ErrBadSubmission},
		{"bad-settings", http.StatusBadRequest, admission.ErrBadSettings},
		{"bad-scheduling", http.StatusBadRequest, admission.ErrBadScheduling},
		{"bad-cursor", http.StatusBadRequest, core.ErrCursor},
		{"unknown-tracker", http.StatusNotFound, core.ErrUnknownTracker},
		{"other-staging", http.StatusConflict, core.ErrOtherStaging},
		{"no-history", http.StatusNotFound, fs.ErrNotExist},
		{codeStopped, http.StatusServiceUnavailable, jobtracker.ErrStopped},
		{codeNoVoters, http.StatusConflict, errNoVoters},
		{"not-voter", http.StatusNotFound, ErrNotVoter},
		{"catching-up", http.StatusConflict, ErrCatchingUp},
		{codeTimeout, http.StatusGatewayTimeout, context.DeadlineExceeded},
		{codeBadRequest, http.StatusBadRequest, nil},
		{codeNotFound, http.StatusNotFound, nil},
		{codeForbidden, http.StatusForbidden, admission.ErrNotAllowed},
		{codeTooLarge, http.StatusRequestEntityTooLarge, nil},
		{codeBusy, http.StatusTooManyRequests, admission.ErrBusy},
		{codeInternal, http.StatusInternalServerError, nil},
	}
}

// problem converts an error to an answer and its HTTP status.
func problem(err error) (*Error, int) {
	var answer *Error
	var follows *core.NotLeaderError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &answer):
	case errors.As(err, &follows):
		answer = &Error{Code: codeNotLeader, Text: err.Error(), Leader: follows.Leader, Addr: follows.Addr}
	case errors.As(err, &large):
		answer = &Error{Code: codeTooLarge, Text: err.Error()}
	default:
		answer = &Error{Code: codeInternal, Text: err.Error()}
		for _, k := range errorKinds() {
			if k.sentinel != nil && errors.Is(err, k.sentinel) {
				answer.Code = k.code
				break
			}
		}
	}
	var busy *admission.Busy
	if errors.As(err, &busy) {
		answer.RetrySeconds = int(admission.RetryAfter / time.Second)
	}
	for _, k := range errorKinds() {
		if k.code == answer.Code {
			return answer, k.status
		}
	}
	return answer, http.StatusInternalServerError
}

// retryable reports whether another job tracker, or the same one later, may serve the request.
func retryable(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return true // an error of the network
	}
	switch e.Code {
	case codeNotLeader, codeTimeout, codeStopped:
		return true
	}
	return false
}
