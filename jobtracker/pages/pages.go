// Package pages makes the web pages of a cluster from the answers of its API.
//
// A page is a function of the values of package web and of a time: cluster.go, jobs.go, job.go and
// history.go have the functions, templates/ the HTML, axis.go the drawings. The handler asks the API
// in the same process, as the user who asks for the page. So a page shows what its user may see, and
// each rule about users has one place.
//
// # Routes
//
//	GET  /                 the cluster
//	GET  /jobs             jobs, with ?state= &owner= &pool= &name= and ?sort=
//	GET  /jobs/ID          a job
//	GET  /history          ended jobs, with ?name= &owner= &state=; trends if all have one name
//	GET  /history/compare  two ended jobs, ?a=ID&b=ID
//	GET  /scheduler        the plan, and why each job has what it has
//	GET  /jobs/ID/attempts/ATTEMPT/STREAM
//	                       an error: mrsubmit ui serves a log itself, with its user's token
//	GET  /assets/NAME      style and script
//
// # Invariants
//
//	P1  Texts of jobs (names, counters, errors) are data: html/template escapes them, and the
//	    content security policy allows neither inline scripts nor inline styles.
//	P2  All that a page shows is in its HTML. The script sorts, filters and reloads; without it the
//	    page shows the same.
//	P3  The files in assets/ are served as they are: no build step, no other host.
//
// Many goroutines may use a handler at once.
package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"path"
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
	templates map[string]*template.Template // by page
	now       func() time.Time
}

// New makes the handler of all pages. It gets its values from api, the handler of package web.
func New(api http.Handler) http.Handler { return newHandler(api, time.Now) }

func newHandler(api http.Handler, now func() time.Time) http.Handler {
	h := &handler{api: api, now: now, templates: make(map[string]*template.Template)}
	for _, name := range []string{"cluster", "jobs", "job", "history", "compare", "scheduler", "problem"} {
		h.templates[name] = template.Must(template.New("frame.html").Funcs(functions()).ParseFS(templateFiles, "templates/frame.html", "templates/"+name+".html"))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.page("cluster", h.cluster))
	mux.HandleFunc("GET /jobs", h.page("jobs", h.jobs))
	mux.HandleFunc("GET /jobs/{id}", h.page("job", h.job))
	mux.HandleFunc("GET /history", h.page("history", h.histories))
	mux.HandleFunc("GET /jobs/{id}/attempts/{attempt}/{stream}", h.page("problem", logElsewhere))
	mux.HandleFunc("GET /scheduler", h.page("scheduler", h.scheduler))
	mux.HandleFunc("GET /history/compare", h.page("compare", h.compare))
	mux.HandleFunc("GET /assets/{name}", asset)
	mux.HandleFunc("/", h.page("problem", func(r *http.Request) (any, error) {
		return nil, &problem{Status: http.StatusNotFound, Text: "no such page: " + r.URL.Path}
	}))
	return mux
}

// frame has what every page shows around its content.
type frame struct {
	Page  string // its template
	Title string
	Now   time.Time
	Body  any
}

// page makes a handler: content computes the values, the template of this name shows them.
func (h *handler) page(name string, content func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, shown := http.StatusOK, name
		body, err := content(r)
		if err != nil {
			p := asProblem(err)
			if p.Leader != "" {
				http.Redirect(w, r, leaderURL(r, p.Leader), http.StatusTemporaryRedirect)
				return
			}
			status, shown, body = p.Status, "problem", p
		}
		var out bytes.Buffer
		f := frame{Page: name, Title: title(name, r), Now: h.now().UTC(), Body: body}
		if err := h.templates[shown].Execute(&out, f); err != nil {
			http.Error(w, "page "+name+": "+err.Error(), http.StatusInternalServerError)
			return
		}
		send(w, r, status, "text/html; charset=utf-8", out.Bytes())
	}
}

// logElsewhere answers requests for logs: a job tracker has neither the logs nor the right to read them.
func logElsewhere(r *http.Request) (any, error) {
	return nil, &problem{Status: http.StatusNotFound, Text: fmt.Sprintf("task trackers have the logs: open these pages with mrsubmit ui, or run mrsubmit logs %s %s", r.PathValue("id"), r.PathValue("attempt"))}
}

func title(name string, r *http.Request) string {
	if id := r.PathValue("id"); id != "" {
		return id
	}
	return name
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
