package listen

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	names := Names{"jt1.example.org:7400", "quern", "[::1]:7400"}
	for host, want := range map[string]bool{
		"jt1.example.org": true, "jt1.example.org:7400": true, "JT1.Example.org.:80": true, "quern:1": true,
		"localhost": true, "localhost:7400": true, "LOCALHOST": true,
		"10.0.0.1:7400": true, "127.0.0.1": true, "[::1]:7400": true, "[::1]": true, "::1": true,
		"": false, ":7400": false, "attacker.example": false, "attacker.example:7400": false, "example.org": false,
		"jt1.example.org.attacker.example": false, "localhost.attacker.example": false, "10.0.0.1.attacker.example": false,
		"10.0.0.1@attacker.example": false, "attacker.example:10.0.0.1": false, "0x7f000001": false, "127.1": false,
	} {
		r := &http.Request{Host: host}
		err := names.Check(r)
		if (err == nil) != want {
			t.Errorf("%q: %v", host, err)
		}
		if refused := (*HostError)(nil); err != nil && (!errors.As(err, &refused) || !strings.Contains(err.Error(), NameFlag)) {
			t.Errorf("%q: %v", host, err)
		}
	}
}

func TestHandler(t *testing.T) {
	served := 0
	h := Names(nil).Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }),
		func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusForbidden)
		})
	for host, want := range map[string]int{"127.0.0.1:1": http.StatusOK, "rebound.example": http.StatusForbidden} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", "http://"+host+"/", nil))
		if w.Code != want {
			t.Errorf("%s: %d %s", host, w.Code, w.Body)
		}
	}
	if served != 1 {
		t.Errorf("served %d requests", served)
	}
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]bool{
		"quern": true, "quern.service.consul": true, "a-b_c.d.": true,
		"": false, "a:80": false, "a..b": false, "*": false, "a b": false, strings.Repeat("x", 64): false,
	} {
		if err := CheckName(name); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
}
