package web

import (
	"log/slog"
	"sync"
	"time"

	"github.com/quernmr/quern/sparselog"
)

// quietWait is how long no request is refused for a limit until the refusals have ended. It exceeds
// the pauses of clients that wait.
const quietWait = 30 * time.Second

// refusals logs when requests begin to be refused for a limit, and when that ends: two lines,
// however many requests are refused.
type refusals struct {
	logger    *slog.Logger
	forbidden sparselog.Limit

	mu    sync.Mutex
	under map[string]*refusal // by the name of the limit
}

type refusal struct {
	began, last time.Time
	requests    int
	end         *time.Timer
}

// forbid logs a request that its peer may not make, unless there are too many. Without refusals it logs all.
func (r *refusals) forbid(to *slog.Logger, msg string, args ...any) {
	if r == nil {
		to.Warn(msg, args...)
		return
	}
	r.forbidden.Warn(to, msg, args...)
}

// add counts a refused request.
func (r *refusals) add(limit string, most int, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	x := r.under[limit]
	if x == nil {
		if r.under == nil {
			r.under = make(map[string]*refusal)
		}
		x = &refusal{began: now}
		x.end = time.AfterFunc(quietWait, func() { r.endIfQuiet(limit, x) })
		r.under[limit] = x
		r.logger.Warn("requests are refused for now", "limit", limit, "value", most, "first", why)
	}
	x.requests++
	x.last = now
}

func (r *refusals) endIfQuiet(limit string, x *refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if quiet := time.Since(x.last); quiet < quietWait {
		x.end.Reset(quietWait - quiet)
		return
	}
	delete(r.under, limit)
	r.logger.Info("requests are no longer refused", "limit", limit, "refused", x.requests, "for", x.last.Sub(x.began).Round(time.Millisecond))
}
