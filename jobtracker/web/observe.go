package web

import (
	"net/http"
	"time"
)

// observeWait limits a request for metrics or a profile, which the client may ask to last long.
const observeWait = 2 * time.Minute

// metrics serves the metrics of this job tracker.
func (h *handler) metrics(w http.ResponseWriter, r *http.Request) { h.observe(w, r, h.Metrics) }

// profiles serves profiles of this process to administrators.
func (h *handler) profiles(w http.ResponseWriter, r *http.Request) {
	auditedOf(r).on = r.URL.Path
	if err := h.requireAdmin(r, "profile a job tracker"); err != nil {
		h.fail(w, r, err)
		return
	}
	h.observe(w, r, h.Profiles)
}

func (h *handler) observe(w http.ResponseWriter, r *http.Request, by http.Handler) {
	if by == nil {
		h.fail(w, r, &Error{Code: codeNotFound, Text: "this job tracker does not serve " + r.URL.Path})
		return
	}
	control, until := http.NewResponseController(w), time.Now().Add(observeWait)
	_ = control.SetReadDeadline(until) // the server's own deadline would end a long profile. Writers in tests have none
	_ = control.SetWriteDeadline(until)
	by.ServeHTTP(w, r)
}
