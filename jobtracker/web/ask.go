package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
)

// takenKey is the context key of the answer that [Ask] takes as it is.
type takenKey struct{}

// taken is the value of an answer that is not encoded, since the one who asks is in the same process.
type taken struct{ value any }

// give passes a value on if the request comes from ask.
func give(r *http.Request, value any) bool {
	t, ok := r.Context().Value(takenKey{}).(*taken)
	if ok {
		t.value = value
	}
	return ok
}

// into copies the value if it has the right type, or is a pointer to that. Else its JSON is decoded.
func (t *taken) into(to any) error {
	from, target := reflect.Indirect(reflect.ValueOf(t.value)), reflect.ValueOf(to).Elem()
	if from.IsValid() && from.Type() == target.Type() {
		target.Set(from)
		return nil
	}
	body, err := json.Marshal(t.value)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, to)
}

// recorded is an answer of a handler in this process.
type recorded struct {
	head   http.Header
	status int
	body   bytes.Buffer
}

func (a *recorded) Header() http.Header         { return a.head }
func (a *recorded) WriteHeader(status int)      { a.status = status }
func (a *recorded) Write(p []byte) (int, error) { return a.body.Write(p) }

// Ask gets a value from an API in this process, with the rights of the user who has sent another
// request. It returns the status of the answer; of an answer that is not OK, the error is an [Error]. The value is the
// caller's own, but strings and slices of ended jobs may be shared: the caller changes none.
func Ask(api http.Handler, user *http.Request, path string, query url.Values, into any) (status int, err error) {
	return ask(api, user, http.MethodGet, path, query, nil, into)
}

// Tell requests a change of an API in this process, as Ask does. The caller has checked that the user, and not
// another site, wants it.
func Tell(api http.Handler, user *http.Request, path string, change any) (status int, err error) {
	body, err := json.Marshal(change)
	if err != nil {
		return http.StatusBadRequest, fmt.Errorf("tell %s: %w", path, err)
	}
	return ask(api, user, http.MethodPost, path, nil, bytes.NewReader(body), new(struct{}))
}

// refusalKey is the context key of a caller's refusal, see Refuse.
type refusalKey struct{}

// Refuse records in the audit log that the caller refuses a change that a user's request asks for.
func Refuse(api http.Handler, user *http.Request, path string, why error) {
	ask(api, user.WithContext(context.WithValue(user.Context(), refusalKey{}, why)), http.MethodPost, path, nil, http.NoBody, new(struct{}))
}

func ask(api http.Handler, user *http.Request, method, path string, query url.Values, body io.Reader, into any) (status int, err error) {
	t := new(taken)
	r, err := http.NewRequestWithContext(context.WithValue(user.Context(), takenKey{}, t), method, path, body)
	if err != nil {
		return http.StatusBadRequest, fmt.Errorf("ask %s: %w", path, err)
	}
	r.TLS, r.RemoteAddr, r.Host, r.URL.RawQuery = user.TLS, user.RemoteAddr, user.Host, query.Encode()
	a := &recorded{head: make(http.Header), status: http.StatusOK}
	api.ServeHTTP(a, r)
	if a.status != http.StatusOK {
		e := new(Error)
		if err := json.Unmarshal(a.body.Bytes(), e); err != nil {
			return a.status, fmt.Errorf("ask %s: status %d", path, a.status)
		}
		return a.status, e
	}
	if t.value != nil {
		err = t.into(into)
	} else {
		err = json.Unmarshal(a.body.Bytes(), into)
	}
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("ask %s: read answer: %w", path, err)
	}
	return a.status, nil
}
