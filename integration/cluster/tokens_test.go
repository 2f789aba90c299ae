package cluster_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// A job's token gives access only to that job's data, with TLS and without. When the job has
// ended, it gives access only to logs.
func TestTokens(t *testing.T) {
	for _, protected := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", protected), func(t *testing.T) {
			c := start(t, func(cfg *processes.Config) {
				cfg.JobTrackers, cfg.TaskTrackers, cfg.MapSlots = 1, 1, 4
				cfg.TLS, cfg.Insecure = protected, !protected
			})
			tt := c.TaskTrackers[0]
			var ids []wire.JobID
			var gatedJobs []*job
			for range 2 {
				j := c.paced(2, "-gate", "-gated-map", "1")
				j.AwaitTraces("m", "ended", 1)
				gatedJobs = append(gatedJobs, j)
			}
			jobs, err := c.client.Jobs(c.ctx, core.Query{Oldest: true})
			if err != nil || len(jobs) != 2 {
				t.Fatalf("%+v, %v", jobs, err)
			}
			var tokens, forLogs, outputs, logs []string // tokens are the jobs', forLogs the user's
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
					for _, one := range a.Items {
						if attempt, err := wire.ParseAttemptID(one.ID); err == nil && attempt.Task.Kind == wire.Map && one.State == "succeeded" {
							outputs = append(outputs, fmt.Sprintf("%s%s/shuffle/%v/%d/%d/0", scheme, tt.Addr, id, attempt.Task.N, attempt.N))
							logs = append(logs, fmt.Sprintf("%s%s/logs/%v/%v/stderr", scheme, tt.Addr, id, attempt))
							return true
						}
					}
					return false
				})
				forLogs = append(forLogs, a.Token)
				token, err := os.ReadFile(filepath.Join(tt.Data(), "tokens", j.ID))
				if err != nil {
					t.Fatal(err)
				}
				tokens = append(tokens, strings.TrimSpace(string(token)))
			}
			peers := c.dialers(protected)
			client := c.Dialer(identity.TaskTracker) // of the owner, as which c.client asked for forLogs
			check := func(when string, url string, config *tls.Config, token string, want int) {
				t.Helper()
				if got, text := request(t, config, "GET", url, "", token); got != want {
					t.Errorf("%s: %s with the token %q: status %d %s, want %d", when, url, token, got, text, want)
				}
			}
			for i := range 2 {
				for _, x := range []struct {
					url          string
					by           *tls.Config
					right, wrong []string
				}{{outputs[i], peers[identity.TaskTracker], tokens, forLogs}, {logs[i], client, forLogs, tokens}} {
					check("running", x.url, x.by, x.right[i], http.StatusOK)
					check("running", x.url, x.by, x.right[1-i], http.StatusForbidden)
					check("running", x.url, x.by, x.wrong[i], http.StatusForbidden)
					check("running", x.url, x.by, strings.ToUpper(x.right[i]), http.StatusForbidden)
					check("running", x.url, x.by, "", http.StatusUnauthorized)
				}
				if protected { // another user has the owner's token
					check("running", logs[i], peers[identity.Client], forLogs[i], http.StatusForbidden)
				}
			}
			// The token stays valid when the tracker restarts.
			if err := errors.Join(tt.Terminate(), tt.Start(), tt.Ready(c.ctx)); err != nil {
				t.Fatal(err)
			}
			check("after a restart", outputs[0], peers[identity.TaskTracker], tokens[1], http.StatusForbidden)
			check("after a restart", logs[0], client, forLogs[0], http.StatusOK)
			check("after a restart", logs[0], client, forLogs[1], http.StatusForbidden)
			for _, j := range gatedJobs {
				j.OpenGate()
				j.checkSuccess()
			}
			for i := range 2 {
				c.await("refusal of the ended job's token", func() bool {
					got, _ := request(t, peers[identity.TaskTracker], "GET", outputs[i], "", tokens[i])
					return got == http.StatusForbidden
				})
				check("ended", logs[i], client, forLogs[i], http.StatusOK)
				check("ended", logs[i], client, forLogs[1-i], http.StatusForbidden)
			}
			if !tt.Logged("a request is refused") || !tt.Logged(fmt.Sprintf("the token does not belong to %v", ids[0])) {
				t.Error("the tracker has not logged the refusal")
			}
			for _, token := range append(tokens, forLogs...) {
				for _, d := range c.All() {
					if len(token) != 64 || d.Logged(token) {
						t.Errorf("%s has logged the token %q", d.ID, token)
					}
				}
			}
		})
	}
}

// dialers returns TLS settings by role; nil without TLS.
func (c *cluster) dialers(protected bool) map[identity.Role]*tls.Config {
	c.t.Helper()
	if !protected {
		return nil
	}
	all := make(map[identity.Role]*tls.Config)
	for _, p := range c.testPeers() {
		if !p.admin {
			all[p.role] = p.config
		}
	}
	return all
}
