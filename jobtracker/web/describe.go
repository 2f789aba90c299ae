package web

import (
	_ "embed"
	"net/http"
)

// description is the OpenAPI document of the routes. TestDescription compares it with them, and with -rewrite
// makes it.
//
//go:embed openapi.json
var description []byte

// describe sends the description. Followers do, too.
func (h *handler) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", jsonType)
	w.Write(description) // an error means that the client has closed the connection
}
