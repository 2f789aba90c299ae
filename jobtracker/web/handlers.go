package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

type handler struct {
	Config
	counters *counters
	refusals *refusals
	first    chan struct{} // has a value for each stream of events that reads its first states, see firstLists
	shared
}

// jsonHandler makes the handler of a route that answers with one JSON value or an error.
func (h *handler) jsonHandler(serve func(ctx context.Context, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestWait)
		defer cancel()
		// Ignore the error: only writers in tests have no deadlines.
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * requestWait))
		if err := rejectBrowser(r); err != nil {
			h.fail(w, r, err)
			return
		}
		limit := int64(maxBody)
		if r.URL.Path == "/v1/submissions" {
			limit = wire.MaxFrame + 16
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		answer, err := serve(ctx, r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		if !give(r, answer) {
			reply(w, http.StatusOK, jsonType, answer)
		}
	}
}

const jsonType = "application/json"

// rejectBrowser refuses a change that a web page requests: browsers send the header Origin with
// every request except GET and HEAD.
func rejectBrowser(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Origin") == "" {
		return nil
	}
	return &Error{Code: codeForbidden, Text: "requests from web pages are refused", Untouched: true}
}

func reply(w http.ResponseWriter, status int, kind string, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Sprintf("web: an answer cannot be encoded: %v", err)) // our types can always be encoded
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // an error means that the client has closed the connection
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	noteFailure(r, err)
	p := h.problem(err)
	switch p.Status {
	case http.StatusInternalServerError:
		h.Logger.Warn("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	case http.StatusForbidden:
		h.logRefusal(r, err)
	}
	if x := new(admission.Busy); errors.As(err, &x) {
		h.refusals.add(x.Limit, x.Max, x.Reason)
	}
	if wait, busy := p.RetryAfter(); busy {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
	}
	if p.Untouched {
		w.Header().Set("Connection", "close") // do not wait for the rest of the body
	}
	reply(w, p.Status, problemType, p)
}

// problem converts an error to an answer. A follower adds the leader.
func (h *handler) problem(err error) *Error {
	p := problem(err)
	if p.Code == codeNotLeader && p.Addr == "" {
		if l := h.Server.Leadership(); !l.Leads {
			p.Leader, p.Addr = l.Leader, l.Addr
		}
	}
	return p
}

// requireLeader fails if this job tracker does not lead.
func (h *handler) requireLeader() (core.Leadership, error) {
	l := h.Server.Leadership()
	if !l.Leads {
		return l, &Error{Code: codeNotLeader, Text: notLeading(l), Leader: l.Leader, Addr: l.Addr, Untouched: true}
	}
	return l, nil
}

func notLeading(l core.Leadership) string {
	if l.Leader == "" {
		return fmt.Sprintf("%v, and knows no leader", core.ErrNotLeader)
	}
	return fmt.Sprintf("%v: ask %s at %s", core.ErrNotLeader, l.Leader, l.Addr)
}

func readJSON(body io.Reader, v any) error {
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		code := problem(err).Code
		if code == codeInternal {
			code = codeBadRequest
		}
		return &Error{Code: code, Text: fmt.Sprintf("read body: %v", err), Untouched: true}
	}
	return nil
}
