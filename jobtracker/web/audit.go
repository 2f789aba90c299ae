package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/quernmr/quern/audit"
	"github.com/quernmr/quern/identity"
)

// audited is what the audit log tells of a request. Its handler adds to it.
type audited struct {
	on, detail string
	err        error
}

type auditedKey struct{}

// auditedOf returns the record of a request. Requests of routes that are not registered share none.
func auditedOf(r *http.Request) *audited {
	if a, ok := r.Context().Value(auditedKey{}).(*audited); ok {
		return a
	}
	return new(audited)
}

// audit serves a request, and records it if its route changes something, is for administrators, or refuses it. A request
// that belongs to another job tracker is recorded there.
func (h *handler) audit(x *route, w http.ResponseWriter, r *http.Request) {
	a := &audited{on: cmp.Or(r.PathValue("attempt"), r.PathValue("id"))}
	if r.Method == http.MethodGet && a.on == "" { // a stream of events. Elsewhere a caller could hide the job behind such text
		a.on = strings.Join(r.URL.Query()[jobParameter.name], " ")
	}
	r = r.WithContext(context.WithValue(r.Context(), auditedKey{}, a))
	h.admit(x, w, r)
	outcome := audit.Done
	if a.err != nil {
		switch p := problem(a.err); {
		case p.Code == codeNotLeader:
			return
		case p.Status == http.StatusForbidden:
			outcome = audit.Refused
		default:
			outcome = audit.Failed
		}
	}
	reads := (r.Method == http.MethodGet || r.Method == http.MethodHead) && x.rule != admins
	if h.Audit == nil || outcome != audit.Refused && reads {
		return
	}
	e := audit.Event{Who: who(r), From: r.RemoteAddr, Action: x.action, On: a.on, Detail: a.detail, Outcome: outcome}
	if a.err != nil {
		e.Reason = a.err.Error()
	}
	h.Audit(e)
}

// who returns the role and name of a request's peer.
func who(r *http.Request) string {
	if peer, ok := identity.PeerOf(r.TLS); ok {
		return peer.String()
	}
	return "unidentified"
}

// jsonText returns a body as text.
func jsonText(body any) string {
	text, err := json.Marshal(body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// noteFailure records the error of a request.
func noteFailure(r *http.Request, err error) {
	a := auditedOf(r)
	a.err = errors.Join(a.err, err)
}
