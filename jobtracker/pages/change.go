package pages

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/quernmr/quern/jobtracker/web"
)

// maxForm limits the body of a change, in bytes.
const maxForm = 4 << 10

// newKey makes the key of a handler's tokens.
func newKey() []byte {
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails
	return key
}

// token is in the forms of a user, and shows that a change comes from a page of this handler: pages of other sites
// cannot read it.
func (h *handler) token(r *http.Request) string {
	sum := hmac.New(sha256.New, h.key)
	sum.Write([]byte(userOf(r)))
	return hex.EncodeToString(sum.Sum(nil))
}

// checkOwn fails if a change does not come from a form of these pages: its Origin, which the browser sets, must be
// this job tracker, and it must have the user's token.
func (h *handler) checkOwn(w http.ResponseWriter, r *http.Request) error {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	if r.Header.Get("Origin") != scheme+"://"+r.Host {
		return &problem{Status: http.StatusForbidden, Text: "the request comes from another site"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return badRequest("read the form: %v", err)
	}
	if !hmac.Equal([]byte(r.PostForm.Get("token")), []byte(h.token(r))) {
		return &problem{Status: http.StatusForbidden, Text: "the form is of an older page, or of another job tracker: go back and load the page again"}
	}
	return nil
}

// changeScheduler changes the scheduler, the metric or the delay rule, and shows the plan.
func (h *handler) changeScheduler(w http.ResponseWriter, r *http.Request) {
	const path = "/v1/cluster/scheduling"
	err := h.checkLeads(r)
	if err == nil {
		if err = h.checkOwn(w, r); err != nil {
			web.Refuse(h.api, r, path, err)
		}
	}
	if err == nil {
		f := r.PostForm
		err = h.tell(r, path, web.Scheduling{Scheduler: f.Get("scheduler"), Metric: f.Get("metric"), Delay: f.Get("delay")})
	}
	if err != nil {
		h.page("scheduler", func(*http.Request) (any, error) { return nil, err })(w, r)
		return
	}
	http.Redirect(w, r, "/scheduler", http.StatusSeeOther)
}

// checkLeads fails if another job tracker leads: it has another key.
func (h *handler) checkLeads(r *http.Request) error {
	_, err := h.led(r)
	return err
}
