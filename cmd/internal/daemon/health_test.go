package daemon

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	answers := map[string]string{
		"/good":     `{"id":"tt1","led":true}`,
		"/alone":    `{"id":"tt1","led":false}`,
		"/other":    `<html>another server's page</html>`,
		"/nameless": `{}`,
	}
	for path, want := range map[string]string{
		"/good":     "ok tasktracker tt1, registered with the leader\n",
		"/alone":    "ok tasktracker tt1, not registered with a leader\n",
		"/other":    "not a daemon's",
		"/nameless": "not a daemon's",
		"/broken":   "500",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" || answers[path] == "" {
				http.Error(w, "broken", http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, answers[path])
		}))
		var output strings.Builder
		err := checkHealth(t.Context(), "tasktracker", []string{"-insecure", server.Listener.Addr().String()}, Output{&output, &output})
		server.Close()
		switch healthy := strings.HasPrefix(want, "ok"); {
		case healthy && (err != nil || output.String() != want):
			t.Errorf("%s: %v, %q", path, err, output.String())
		case !healthy && (err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrUsage)):
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestHealthRefused(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	listener.Close()
	for _, c := range []struct {
		args []string
		want error
	}{
		{nil, ErrUsage},
		{[]string{"one:1", "two:2"}, ErrUsage},
		{[]string{"nowhere"}, ErrUsage},
		{[]string{"-tls-dir", t.TempDir(), closed}, ErrUsage},
		{[]string{"-unknown", closed}, ErrUsage},
		{[]string{"-insecure", "-audit-log", "x", closed}, ErrUsage}, // only daemons have one
		{[]string{"-insecure", "-tls-dir", "x", closed}, ErrUsage},
		{[]string{"-h"}, flag.ErrHelp},
		{[]string{closed}, nil},
		{[]string{"-insecure", closed}, nil},
	} {
		var output strings.Builder
		err := checkHealth(t.Context(), "jobtracker", c.args, Output{&output, &output})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || c.want == nil && errors.Is(err, ErrUsage) {
			t.Errorf("%q: %v, want %v", c.args, err, c.want)
		}
	}
}
