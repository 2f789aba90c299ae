package ui

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// start runs a proxy of a cluster with these job trackers; the first is the known one.
func start(t *testing.T, first string) *Proxy {
	t.Helper()
	p, err := Listen(0, Config{Pages: Forward(Cluster{Leader: func(context.Context) (string, error) { return first, nil }, Transport: new(http.Transport)})})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve() }()
	t.Cleanup(func() {
		p.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return p
}

func jobTracker(t *testing.T, h http.HandlerFunc) (addr string) {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func get(t *testing.T, c *http.Client, at string, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, at, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// TestAdmission checks the rules U1 to U3.
func TestAdmission(t *testing.T) {
	p := start(t, jobTracker(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cookie") != "" {
			t.Error("the cluster got the cookie")
		}
		io.WriteString(w, "page "+r.URL.Path)
	}))
	at, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	plain := "http://" + at.Host + "/jobs"
	if status, _ := get(t, browser(t), plain, ""); status != http.StatusForbidden {
		t.Errorf("without the token: status %d", status)
	}
	if status, _ := get(t, browser(t), "http://"+at.Host+"/?token=wrong", ""); status != http.StatusForbidden {
		t.Errorf("with a wrong token: status %d", status)
	}
	user := browser(t)
	if status, body := get(t, user, p.URL(), ""); status != http.StatusOK || body != "page /" {
		t.Errorf("with the token: status %d, %q", status, body)
	}
	if status, body := get(t, user, plain, ""); status != http.StatusOK || body != "page /jobs" {
		t.Errorf("with the cookie: status %d, %q", status, body)
	}
	if status, _ := get(t, browser(t), p.URL(), ""); status != http.StatusForbidden {
		t.Errorf("with the token again: status %d", status)
	}
	if status, _ := get(t, user, plain, "evil.example:80"); status != http.StatusMisdirectedRequest {
		t.Errorf("with another Host: status %d", status)
	}
	answer, err := user.Post(plain, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a change: status %d", answer.StatusCode)
	}
}

// TestChange: the proxy passes on the one change that pages have, if the browser says that it comes from the
// pages. A follower sends it to the leader, with the whole body and the leader's address as the origin.
func TestChange(t *testing.T) {
	const form = "scheduler=fifo&token=t"
	leader := jobTracker(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Method == http.MethodPost && (err != nil || string(body) != form || r.Header.Get("Origin") != "http://"+r.Host) {
			t.Errorf("the leader got %q from %q: %v", body, r.Header.Get("Origin"), err)
		}
		io.WriteString(w, r.Method+" "+r.URL.Path)
	})
	p := start(t, jobTracker(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+leader+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	at, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	own := "http://" + at.Host
	user := browser(t)
	get(t, user, p.URL(), "")
	for _, c := range []struct {
		client                     *http.Client
		method, path, origin, body string
		want                       int
	}{
		{user, http.MethodPost, "/scheduler", own, form, http.StatusOK},
		{user, http.MethodPost, "/scheduler", "", form, http.StatusForbidden},
		{user, http.MethodPost, "/scheduler", "null", form, http.StatusForbidden},
		{user, http.MethodPost, "/scheduler", "http://evil.example", form, http.StatusForbidden},
		{user, http.MethodPost, "/scheduler", strings.Replace(own, "http", "https", 1), form, http.StatusForbidden},
		{user, http.MethodPost, "/scheduler", own, strings.Repeat("x", maxChange+1), http.StatusBadRequest},
		{browser(t), http.MethodPost, "/scheduler", own, form, http.StatusForbidden}, // without the cookie
		{user, http.MethodPost, "/scheduler/", own, form, http.StatusMethodNotAllowed},
		{user, http.MethodPost, "/v1/cluster/scheduling", own, form, http.StatusMethodNotAllowed},
		{user, http.MethodPost, "/v1/jobs/job_7_0001/kill", own, form, http.StatusMethodNotAllowed},
		{user, http.MethodPut, "/scheduler", own, form, http.StatusMethodNotAllowed},
		{user, http.MethodDelete, "/scheduler", own, form, http.StatusMethodNotAllowed},
	} {
		r, err := http.NewRequest(c.method, own+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		answer, err := c.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s %s from %q: status %d, want %d", c.method, c.path, c.origin, answer.StatusCode, c.want)
		}
	}
}

// TestTwoProxies: a browser can show two clusters. It sends the cookies of a host to all its ports.
func TestTwoProxies(t *testing.T) {
	user := browser(t)
	var all []*Proxy
	for range 2 {
		p := start(t, jobTracker(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "page") }))
		if status, _ := get(t, user, p.URL(), ""); status != http.StatusOK {
			t.Errorf("with the token: status %d", status)
		}
		all = append(all, p)
	}
	for i, p := range all {
		if status, _ := get(t, user, "http://"+p.listener.Addr().String()+"/jobs", ""); status != http.StatusOK {
			t.Errorf("proxy %d: status %d", i, status)
		}
	}
}

// TestLeaderChanges: the proxy follows a follower's answer to the leader.
func TestLeaderChanges(t *testing.T) {
	leader := jobTracker(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "leader") })
	follower := jobTracker(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+leader+r.URL.Path, http.StatusTemporaryRedirect)
	})
	p := start(t, follower)
	if status, body := get(t, browser(t), p.URL(), ""); status != http.StatusOK || body != "leader" {
		t.Errorf("status %d, %q", status, body)
	}
}
