// Package pages makes the web pages of a cluster from the answers of its API.
//
// A page is a function of the values of package web and of a time. A file has the functions of each page, and
// templates/ its HTML. The drawings are SVG: axis.go has axes of time, bars.go the bars of jobs on one axis, stack.go and slots.go slots over
// time, curves.go bytes over time, histogram.go histograms, and flow.go the graph of a flow, which package dag lays out. The handler asks the API
// in the same process, as the user who asks for the page. So a page shows what its user may see, and
// each rule about users has one place.
//
// # Routes
//
//	GET  /                     the cluster
//	GET  /trackers             all task trackers, ?from=
//	GET  /jobs                 jobs, with ?state= &owner= &pool= &name= &flow= &since=, ?sort= &down, ?from=
//	GET  /jobs/ID              a job; below it /attempts, /counters and /settings
//	GET  /jobs/ID/attempts/ATTEMPT/STREAM
//	                           a log; its text is below it, at /text, where mrsubmit serves it with its user's
//	                           token, and a job tracker answers with an error
//	GET  /flows/ID             a flow
//	GET  /scheduler            the plan, and why each job has what it has
//	GET  /scheduler/whatif     what each scheduler would make of the jobs
//	POST /scheduler            a form changes scheduler, metric or delay rule, see change.go
//	GET  /history              ended jobs, with the filters of /jobs, &exact and ?after=
//	GET  /history/compare      two ended jobs, ?a=ID&b=ID
//	GET  /assets/NAME          style and script
//
// # Invariants
//
//	P1  Texts of jobs (names, counters, errors) are data: html/template escapes them, and the
//	    content security policy allows neither inline scripts nor inline styles.
//	P2  All that a page shows is in its HTML, except for the text of logs. The script sorts and reloads; without
//	    it the page shows the same.
//	P3  A change has the Origin of the pages and the token of their form. The API decides whether the user may
//	    make it.
//	P4  The files in assets/ are served as they are: no build step, no other host.
//	P5  Only requests of one user share a page, since users may see different jobs. A page is as old as a request
//	    allows, see share.go.
//
// Many goroutines may use a handler at once.
package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// policy forbids what a page does not need, so that an error in P1 stays without effect.
const policy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// handler serves the pages.
type handler struct {
	api       http.Handler
	key       []byte                        // of the tokens in forms
	templates map[string]*template.Template // by page
	now       func() time.Time
	pace      pace
	made      *made
}

// New makes the handler of all pages. It gets its values from api, the handler of package web.
func New(api http.Handler) http.Handler { return newHandler(api, time.Now) }

func newHandler(api http.Handler, now func() time.Time) http.Handler {
	h := &handler{api: api, key: newKey(), now: now, made: newMade(api), templates: make(map[string]*template.Template)}
	for _, name := range []string{"cluster", "trackers", "jobs", "job", "attempts", "counters", "settings", "log", "flow", "history", "compare", "scheduler", "whatif", "problem"} {
		h.templates[name] = template.Must(template.New("frame.html").Funcs(functions()).ParseFS(templateFiles, "templates/frame.html", "templates/parts.html", "templates/charts.html", "templates/"+name+".html"))
	}
	mux := http.NewServeMux()
	for pattern, page := range map[string]struct {
		name    string
		content func(r *http.Request) (any, error)
	}{
		"/{$}": {"cluster", h.cluster}, "/trackers": {"trackers", h.trackers}, "/scheduler": {"scheduler", h.scheduler}, "/scheduler/whatif": {"whatif", h.whatIf},
		"/jobs": {"jobs", h.jobs}, "/jobs/{id}": {"job", h.job}, "/jobs/{id}/attempts": {"attempts", h.attempts},
		"/jobs/{id}/counters": {"counters", h.counters}, "/jobs/{id}/settings": {"settings", h.settings},
		"/jobs/{id}/attempts/{attempt}/{stream}": {"log", h.log}, "/flows/{id}": {"flow", h.flow},
		"/history": {"history", h.histories}, "/history/compare": {"compare", h.compare},
	} {
		mux.HandleFunc("GET "+pattern, h.page(page.name, page.content))
	}
	mux.HandleFunc("GET /jobs/{id}/attempts/{attempt}/{stream}/text", logElsewhere)
	mux.HandleFunc("POST /scheduler", h.changeScheduler)
	mux.HandleFunc("GET /assets/{name}", asset)
	mux.HandleFunc("/", h.page("problem", func(r *http.Request) (any, error) {
		return nil, &problem{Status: http.StatusNotFound, Text: "no such page: " + r.URL.Path}
	}))
	return mux
}

// frame has what every page shows around its content.
type frame struct {
	Page   string // its template
	Title  string
	Now    time.Time
	Events string // query of the events after which the script loads the page again; empty: it does not
	Body   any
}

// areas says to which entry of the navigation a page belongs.
var areas = map[string]string{
	"cluster": "cluster", "trackers": "cluster", "jobs": "jobs", "job": "jobs", "attempts": "jobs", "counters": "jobs", "settings": "jobs", "log": "jobs", "flow": "jobs",
	"scheduler": "scheduler", "whatif": "scheduler", "history": "history", "compare": "history",
}

// Area is the entry of the navigation.
func (f frame) Area() string { return areas[f.Page] }

// eventsOf selects the events of a page: those of its job or flow, or of all jobs that have not ended. Pages about
// ended jobs do not change.
func eventsOf(body any) string {
	switch page := body.(type) {
	case *historyPage, *comparePage:
		return ""
	case *flowPage:
		if ended(page.State) {
			return ""
		}
		return url.Values{"flow": {page.ID}}.Encode()
	case interface{ live() (job string) }:
		if job := page.live(); job != "" {
			return url.Values{"job": {job}}.Encode()
		}
		return ""
	}
	return url.Values{"state": states[1:6]}.Encode()
}

// page makes a handler: content computes the values, the template of this name shows them.
func (h *handler) page(name string, content func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page, err := h.made.get(r, func(r *http.Request) (*shown, error) {
			began := time.Now()
			body, err := content(r)
			if err != nil {
				return nil, err
			}
			return h.show(name, name, body, r, began)
		})
		status := http.StatusOK
		if err != nil {
			p := asProblem(err)
			if p.Leader != "" {
				http.Redirect(w, r, leaderURL(r, p.Leader), http.StatusTemporaryRedirect)
				return
			}
			status = p.Status
			if page, err = h.show("problem", name, p, r, time.Now()); err != nil {
				http.Error(w, "page "+name+": "+err.Error(), http.StatusInternalServerError)
				return
			}
		}
		w.Header().Set("Reload-After", strconv.FormatInt(h.pace.after(h.now(), 0).Milliseconds(), 10))
		w.Header().Set("Age", strconv.FormatFloat(math.Ceil(time.Since(page.began).Seconds()), 'f', 0, 64))
		send(w, r, status, "text/html; charset=utf-8", page.html)
	}
}

// show executes a template with the values of a page.
func (h *handler) show(template, name string, body any, r *http.Request, began time.Time) (*shown, error) {
	var out bytes.Buffer
	f := frame{Page: name, Title: title(name, r), Now: h.now().UTC(), Events: eventsOf(body), Body: body}
	if err := h.templates[template].Execute(&out, f); err != nil {
		return nil, err
	}
	h.pace.after(h.now(), time.Since(began))
	return &shown{out.Bytes(), began}, nil
}

func title(name string, r *http.Request) string {
	if name == "whatif" {
		return "What if"
	}
	title := strings.ToUpper(name[:1]) + name[1:]
	if id := r.PathValue("id"); id != "" {
		title = id + " " + name
	}
	return title
}

func asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	data, err := assetFiles.ReadFile("assets/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	send(w, r, http.StatusOK, types[path.Ext(name)], data)
}

// send answers with a body, or with 304 if the browser has it.
func send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	sum := sha256.Sum256(body)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	head := w.Header()
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-cache")
	head.Set("ETag", tag)
	if status == http.StatusOK && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head.Set("Content-Type", contentType)
	w.WriteHeader(status)
	w.Write(body) // an error means that the browser has closed the connection
}
