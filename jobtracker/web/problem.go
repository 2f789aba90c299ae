package web

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
)

// Error is an error in an answer: a problem of RFC 9457, with members of our own. errors.Is finds the sentinel of
// its code.
type Error struct {
	Type   string `json:"type"`   // the code's row in docs/reference.md
	Title  string `json:"title"`  // the code in words
	Status int    `json:"status"` // of HTTP
	Text   string `json:"detail"` // what failed, and why
	Code   string `json:"code"`
	Leader string `json:"leader,omitempty"` // id of the leader, if known
	Addr   string `json:"addr,omitempty"`   // host:port of its API
	// Untouched: the request was refused before it could have an effect.
	Untouched bool `json:"untouched,omitempty"`
	// RetrySeconds: with the code busy, how long to wait before the request is repeated.
	RetrySeconds int `json:"retrySeconds,omitempty"`
}

// problemType is the content type of an [Error].
const problemType = "application/problem+json"

// problemPage has a row for each code of an error.
const problemPage = "https://github.com/quernmr/quern/blob/main/docs/reference.md#error-"

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
	codeUpgrade    = "upgrade-required"
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
		{"attempt-ended", http.StatusConflict, admission.ErrAttemptEnded},
		{"attempt-committing", http.StatusConflict, admission.ErrAttemptCommitting},
		{"not-task", http.StatusConflict, admission.ErrNotTask},
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
		{codeUpgrade, http.StatusUpgradeRequired, nil},
		{codeNotFound, http.StatusNotFound, nil},
		{codeForbidden, http.StatusForbidden, admission.ErrNotAllowed},
		{codeTooLarge, http.StatusRequestEntityTooLarge, nil},
		{codeBusy, http.StatusTooManyRequests, admission.ErrBusy},
		{codeInternal, http.StatusInternalServerError, nil},
	}
}

// problem converts an error to an answer.
func problem(err error) *Error {
	p := new(Error)
	var answer *Error
	var follows *core.NotLeaderError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &answer):
		*p = *answer
	case errors.As(err, &follows):
		*p = Error{Code: codeNotLeader, Text: err.Error(), Leader: follows.Leader, Addr: follows.Addr}
	case errors.As(err, &large):
		*p = Error{Code: codeTooLarge, Text: err.Error()}
	default:
		*p = Error{Code: codeOf(err), Text: err.Error()}
	}
	var busy *admission.Busy
	if errors.As(err, &busy) {
		p.RetrySeconds = int(admission.RetryAfter / time.Second)
	}
	p.Type, p.Title, p.Status = problemPage+p.Code, strings.ReplaceAll(p.Code, "-", " "), http.StatusInternalServerError
	for _, k := range errorKinds() {
		if k.code == p.Code {
			p.Status = k.status
		}
	}
	return p
}

// codeOf returns the code of the sentinel of an error.
func codeOf(err error) string {
	for _, k := range errorKinds() {
		if k.sentinel != nil && errors.Is(err, k.sentinel) {
			return k.code
		}
	}
	return codeInternal
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
