package listen

import (
	"context"
	"net"
	"net/http"
)

type connKey struct{}

// Server makes connections of a server known when they have sent the header of a request. With TLS
// they are known before. It changes the server and returns it.
func Server(s *http.Server) *http.Server {
	h := s.Handler
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if c, ok := c.(*conn); ok {
			return context.WithValue(ctx, connKey{}, c)
		}
		return ctx
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.Known()
		}
		h.ServeHTTP(w, r)
	})
	return s
}
