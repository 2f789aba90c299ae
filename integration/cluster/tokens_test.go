package cluster_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// A job's token opens only that job, with TLS and without. For uncommitted data it
// expires with the job.
func TestTokens(t *testing.T) {
	for _, protected := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", protected), func(t *testing.T) {
			c := start(t, func(cfg *processes.Config) {
				cfg.JobTrackers, cfg.TaskTrackers, cfg.TLS, cfg.MapSlots = 1, 1, protected, 4
			})
			tt := c.TaskTrackers[0]
			var ids []wire.JobID
			var held []*job
			for range 2 {
				j := c.paced(2, "-gate", "-held", "1")
				j.Reached("m", "ended", 1)
				held = append(held, j)
			}
			jobs, err := c.client.Jobs(c.ctx)
			if err != nil || len(jobs) != 2 {
				t.Fatalf("%+v, %v", jobs, err)
			}
			var tokens, outputs, logs []string
			scheme := map[bool]string{false: "http://", true: "https://"}[protected]
			for _, j := range jobs {
				id, err := wire.ParseJobID(j.ID)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
				var a *web.Attempts
				c.await("a map that has ended", func() bool {
					if a, err = c.client.Attempts(c.ctx, id); err != nil {
						t.Fatal(err)
					}
					for _, one := range a.Attempts {
						if try, err := wire.ParseAttemptID(one.ID); err == nil && try.Task.Kind == wire.Map && one.State == "succeeded" {
							outputs = append(outputs, fmt.Sprintf("%s%s/shuffle/%v/%d/%d/0", scheme, tt.Addr, id, try.Task.N, try.N))
							logs = append(logs, fmt.Sprintf("%s%s/logs/%v/%v/stderr", scheme, tt.Addr, id, try))
							return true
						}
					}
					return false
				})
				tokens = append(tokens, a.Token)
			}
			peers := c.dialers(protected)
			check := func(when string, url string, by *tls.Config, token string, want int) {
				t.Helper()
				if got, text := ask(t, by, "GET", url, "", token); got != want {
					t.Errorf("%s: %s with the token %q: status %d %s, want %d", when, url, token, got, text, want)
				}
			}
			for i := range 2 {
				for _, x := range []struct {
					url string
					by  *tls.Config
				}{{outputs[i], peers[identity.TaskTracker]}, {logs[i], peers[identity.Client]}} {
					check("running", x.url, x.by, tokens[i], http.StatusOK)
					check("running", x.url, x.by, tokens[1-i], http.StatusForbidden)
					check("running", x.url, x.by, strings.ToUpper(tokens[i]), http.StatusForbidden)
					check("running", x.url, x.by, "", http.StatusUnauthorized)
				}
			}
			// The token stays valid when the tracker restarts.
			if err := errors.Join(tt.Terminate(), tt.Start(), tt.Ready(c.ctx)); err != nil {
				t.Fatal(err)
			}
			check("after a restart", outputs[0], peers[identity.TaskTracker], tokens[1], http.StatusForbidden)
			check("after a restart", logs[0], peers[identity.Client], tokens[0], http.StatusOK)
			check("after a restart", logs[0], peers[identity.Client], tokens[1], http.StatusForbidden)
			for _, j := range held {
				j.Open()
				j.correct()
			}
			for i := range 2 {
				c.await("the end of the token", func() bool {
					got, _ := ask(t, peers[identity.TaskTracker], "GET", outputs[i], "", tokens[i])
					return got == http.StatusForbidden
				})
				check("ended", logs[i], peers[identity.Client], tokens[i], http.StatusOK)
				check("ended", logs[i], peers[identity.Client], tokens[1-i], http.StatusForbidden)
			}
			if !tt.Said("a request is refused") || !tt.Said(fmt.Sprintf("the token does not belong to %v", ids[0])) {
				t.Error("the tracker has not said who was refused")
			}
			for _, token := range tokens {
				for _, d := range c.All() {
					if len(token) != 64 || d.Said(token) {
						t.Errorf("%s has said the token %q", d.ID, token)
					}
				}
			}
		})
	}
}

// dialers returns the dialers of a task tracker and a client; nil without TLS.
func (c *cluster) dialers(protected bool) map[identity.Role]*tls.Config {
	c.t.Helper()
	if !protected {
		return nil
	}
	all := make(map[identity.Role]*tls.Config)
	for _, p := range c.strangers() {
		if !p.admin {
			all[p.role] = p.config
		}
	}
	return all
}
