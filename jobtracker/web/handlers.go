package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

type handler struct{ Config }

// short makes a handler of a route that answers at once: with a value, as JSON, or an error.
func (h *handler) short(serve func(ctx context.Context, r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestWait)
		defer cancel()
		// The writer may be none that knows deadlines; then it needs none.
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * requestWait))
		if err := fromPage(r); err != nil {
			h.fail(w, r, err)
			return
		}
		limit := int64(maxSmall)
		if r.URL.Path == "/v1/submissions" {
			limit = wire.MaxFrame + 16
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		answer, err := serve(ctx, r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		reply(w, http.StatusOK, answer)
	}
}

// fromPage refuses a change that a web page asks for: browsers name the origin
// of every request that is no plain look.
func fromPage(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Origin") == "" {
		return nil
	}
	return &Error{Code: codeForbidden, Text: "requests of web pages are refused", Untouched: true}
}

func reply(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Sprintf("web: an answer cannot be encoded: %v", err)) // only a map key or value of ours could
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a client that has gone needs no answer
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	p, status := h.problem(r.Context(), err)
	switch status {
	case http.StatusInternalServerError:
		h.Logger.Warn("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	case http.StatusForbidden:
		h.refused(r, err)
	}
	if p.Untouched {
		w.Header().Set("Connection", "close") // what is left of the body is not waited for
	}
	reply(w, status, p)
}

// problem is how an error travels: from one that does not lead, with the leader.
func (h *handler) problem(ctx context.Context, err error) (*Error, int) {
	p, status := problem(err)
	if p.Code != codeNotLeader || p.Addr != "" {
		return p, status
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	told := *p
	if c, err := h.Server.Cluster(ctx); err == nil && !c.Leads {
		told.Leader, told.Addr = c.Leader, c.Addr
	}
	return &told, status
}

// leads turns a request away that only the leader can serve.
func (h *handler) leads(ctx context.Context) (wire.ClusterStatus, error) {
	c, err := h.Server.Cluster(ctx)
	if err != nil {
		return c, err
	}
	if !c.Leads {
		return c, &Error{Code: codeNotLeader, Text: notLeading(c), Leader: c.Leader, Addr: c.Addr, Untouched: true}
	}
	return c, nil
}

func notLeading(c wire.ClusterStatus) string {
	if c.Leader == "" {
		return fmt.Sprintf("%v, and knows nobody who does", core.ErrNotLeader)
	}
	return fmt.Sprintf("%v: ask %s at %s", core.ErrNotLeader, c.Leader, c.Addr)
}

func readJSON(body io.Reader, v any) error {
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		p, _ := problem(err)
		if p.Code == codeInternal {
			p.Code = codeBadRequest
		}
		return &Error{Code: p.Code, Text: fmt.Sprintf("read body: %v", err), Untouched: true}
	}
	return nil
}
