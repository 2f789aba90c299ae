package processes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/web"
)

// Status returns a job tracker's own status of the cluster, even if it is not the leader.
func (d *Daemon) Status(ctx context.Context) (*web.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	scheme := "http"
	if d.identity != nil {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+d.Addr+"/v1/cluster", nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: d.identity.Dialer(identity.JobTracker), DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	status := new(web.Cluster)
	if err := json.NewDecoder(resp.Body).Decode(status); err != nil {
		return nil, fmt.Errorf("status of %s: %w", d.ID, err)
	}
	return status, nil
}

// Leader returns a running job tracker other than the given one that reports that it is the leader,
// and its status; nil: none now.
func (c *Cluster) Leader(ctx context.Context, except *Daemon) (*Daemon, *web.Cluster) {
	for _, d := range c.JobTrackers {
		if d == except || !d.Running() {
			continue
		}
		if status, err := d.Status(ctx); err == nil && status.IsLeader {
			return d, status
		}
	}
	return nil, nil
}

// Connected counts the task trackers that are ready for work; -1: no leader.
func Connected(ctx context.Context, client *web.Client) int {
	status, err := client.Cluster(ctx)
	if err != nil {
		return -1
	}
	return connected(status)
}

// Connected is the function Connected for daemons of another revision: it does not ask which job
// tracker leads. Only a leader has connected task trackers.
func (c *Cluster) Connected(ctx context.Context) (n int) {
	for _, d := range c.JobTrackers {
		if status, err := d.Status(ctx); err == nil {
			n = max(n, connected(status))
		}
	}
	return n
}

func connected(status *web.Cluster) (n int) {
	for _, t := range status.Trackers {
		if t.Connected {
			n++
		}
	}
	return n
}
