package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/wire"
)

type (
	// Cluster describes a cluster.
	Cluster struct {
		ID       string    `json:"id"`
		Start    time.Time `json:"start,omitzero"` // when it was bootstrapped; part of every job's id
		Staging  string    `json:"staging"`
		Own      string    `json:"ownStaging,omitempty"` // where the asking user stages; empty: in Staging
		Epoch    uint64    `json:"epoch"`
		Leader   string    `json:"leader"`
		Addr     string    `json:"addr"`
		IsLeader bool      `json:"isLeader"`        // the answering job tracker leads
		Admin    bool      `json:"admin,omitempty"` // the asking user may change the cluster
		Jobs     int       `json:"jobs"`            // number of jobs that have not ended
		Wall     time.Time `json:"wall"`            // clock of the answering job tracker

		Scheduling Scheduling `json:"scheduling"`       // from the leader
		NoPlan     string     `json:"noPlan,omitempty"` // why there is no new plan
		Pools      Pools      `json:"pools"`            // from the leader

		Trackers   []Tracker     `json:"trackers"`
		Lost       []LostTracker `json:"lost,omitempty"`       // by tracker, from the leader
		Drains     []Drain       `json:"drains,omitempty"`     // by tracker, from the leader
		Exclusions []Exclusion   `json:"exclusions,omitempty"` // by tracker, from the leader
		Voters     []Voter       `json:"voters"`
		Log        Log           `json:"log"`
		Limits     []Limit       `json:"limits,omitempty"` // from the leader
	}

	// Limit says how much of an administrator's limit is used. For a limit of each user, pool or
	// task tracker, it is about the one that uses most.
	Limit struct {
		Name string `json:"name"`
		Of   string `json:"of,omitempty"` // such as "user ann"; empty: the cluster
		Used int    `json:"used"`
		Max  int    `json:"max"`
	}

	// LostTracker is a lost task tracker that has not registered again, and what was lost with it.
	LostTracker struct {
		ID      string    `json:"id"`
		Host    string    `json:"host"`
		Addr    string    `json:"addr"`
		Rack    string    `json:"rack,omitempty"`
		Since   time.Time `json:"since"`
		Maps    int       `json:"maps"` // attempts that ran there
		Reduces int       `json:"reduces"`
		Outputs int       `json:"outputs"`           // map outputs of jobs that had not ended
		Stopped bool      `json:"stopped,omitempty"` // it had said that it stops
	}

	// Log counts what the answering job tracker has written to its log since its start.
	Log struct {
		Entries int64 `json:"entries"`
		Bytes   int64 `json:"bytes"`
	}

	// Offer is how much of a resource a task tracker offers, and what running attempts use of it.
	Offer struct {
		Total int64 `json:"total"`
		Used  int64 `json:"used"`
	}

	// Tracker is the state of a task tracker.
	Tracker struct {
		ID           string `json:"id"`
		Host         string `json:"host"`
		Addr         string `json:"addr"`
		Incarnation  uint64 `json:"incarnation"`
		MapSlots     int    `json:"mapSlots"`
		ReduceSlots  int    `json:"reduceSlots"`
		Maps         int    `json:"maps"` // running attempts
		Reduces      int    `json:"reduces"`
		Memory       *Offer `json:"memory,omitempty"` // bytes; nil: slots alone count
		Cores        *Offer `json:"cores,omitempty"`
		Connected    bool   `json:"connected"`
		SilentMillis int64  `json:"silentMillis"`
		Excluded     string `json:"excluded,omitempty"`
		Trouble      string `json:"trouble,omitempty"`
		Rack         string `json:"rack,omitempty"`
		Limits       string `json:"limits,omitempty"`    // what limits attempts
		Isolation    string `json:"isolation,omitempty"` // level of isolation of jobs
		Faults       Faults `json:"faults,omitzero"`

		Load  float64 `json:"load,omitempty"`  // processes that run or wait to, in the mean of a minute; left out: not known
		Disks []Disk  `json:"disks,omitempty"` // its directories; left out: not known yet
	}

	// Faults counts faults of a task tracker: those of its machine since its start, the others since it was registered with
	// this leader.
	Faults struct {
		Attempts int   `json:"attempts,omitempty"` // that failed there
		Outputs  int   `json:"outputs,omitempty"`  // map outputs of it that could not be read
		Fetches  int64 `json:"fetches,omitempty"`  // of its homes that failed
		Disks    int   `json:"disks,omitempty"`    // how many times it has stopped using a disk
	}

	// Disk is a directory of a task tracker, and the space on its disk.
	Disk struct {
		Path   string `json:"path"`
		Free   int64  `json:"free,omitempty"`   // bytes; left out: not known
		Total  int64  `json:"total,omitempty"`  // bytes; left out: not known
		Failed string `json:"failed,omitempty"` // why it is not used
	}
)

func clusterOf(s *wire.ClusterStatus, wall time.Time, voters []Voter) Cluster {
	c := Cluster{
		ID: s.Cluster, Start: timeOf(s.Start), Staging: s.Staging, Epoch: s.Epoch, Leader: s.Leader, Addr: s.Addr, IsLeader: s.IsLeader,
		Jobs: s.Jobs, Wall: wall.UTC(), Trackers: make([]Tracker, 0, len(s.Trackers)), Voters: voters,
		Scheduling: Scheduling(s.Scheduling), NoPlan: s.NoPlan, Pools: poolsOf(s), Drains: drainsOf(s.Drains), Exclusions: exclusionsOf(s.Exclusions),
	}
	for i := range s.Trackers {
		t := &s.Trackers[i]
		c.Trackers = append(c.Trackers, Tracker{
			ID: t.Tracker, Host: t.Host, Addr: t.Addr, Incarnation: t.Incarnation, MapSlots: t.MapSlots,
			ReduceSlots: t.ReduceSlots, Maps: t.Maps, Reduces: t.Reduces, Connected: t.Connected,
			Memory: offerOf(t.Memory), Cores: offerOf(t.Cores),
			SilentMillis: t.Silent, Excluded: t.Excluded, Trouble: t.Trouble, Rack: t.Rack, Limits: t.Limits, Isolation: t.Isolation,
			Faults: Faults(t.Faults),
		})
		if m := t.Machine; m != nil {
			x := &c.Trackers[i]
			x.Load = m.Load
			for _, d := range m.Disks {
				x.Disks = append(x.Disks, Disk(d))
			}
		}
	}
	for i := range s.Lost {
		t := &s.Lost[i]
		c.Lost = append(c.Lost, LostTracker{
			ID: t.Tracker, Host: t.Host, Addr: t.Addr, Rack: t.Rack, Since: time.UnixMilli(t.Since).UTC(),
			Maps: t.Maps, Reduces: t.Reduces, Outputs: t.Outputs, Stopped: t.Stopped,
		})
	}
	for _, x := range s.Limits {
		c.Limits = append(c.Limits, Limit(x))
	}
	return c
}

func offerOf(o wire.Offer) *Offer {
	if o.Total == 0 {
		return nil
	}
	return &Offer{Total: o.Total, Used: o.Used}
}

func (h *handler) cluster(ctx context.Context, r *http.Request) (any, error) {
	c, err := h.Server.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	voters := []Voter{}
	if h.Voters != nil {
		voters = append(voters, h.Voters.Voters()...)
	}
	answer := clusterOf(&c, h.now(), voters)
	answer.Admin = h.requireAdmin(r, "") == nil
	if c.IsLeader {
		answer.Limits = append(answer.Limits, h.counters.inUse()...)
	}
	if peer, ok := identity.PeerOf(r.TLS); ok && h.UsersStage && peer.Role == identity.Client {
		answer.Own = wire.UserStaging(c.Staging, peer.Name)
	}
	if h.Log != nil {
		answer.Log.Entries, answer.Log.Bytes = h.Log.Stored()
	}
	return answer, nil
}

// Health is a job tracker's answer to a health check.
type Health struct {
	ID  string `json:"id"`
	Led bool   `json:"led"` // it knows a leader
}

// health answers health checks. An answer shows that the goroutine of Server.Run works.
func (h *handler) health(ctx context.Context, _ *http.Request) (any, error) {
	c, err := h.Server.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	return Health{h.ID, c.Leader != ""}, nil
}

// Cluster describes the cluster as its leader knows it, or as a follower does if it finds no
// leader.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	s, busy := c.known.Search(c.Patience), busyWaiter{c: c, patience: c.Patience}
	var follower *Cluster
	for {
		addr, limit, err := s.Next(ctx)
		if err != nil {
			if follower != nil {
				return follower, nil
			}
			return nil, fmt.Errorf("describe cluster: %w", err)
		}
		answer := new(Cluster)
		err = c.sendTo(ctx, addr, limit, request{method: http.MethodGet, path: "/v1/cluster"}, answer)
		again, failed := busy.again(ctx, err)
		switch {
		case failed != nil:
			return nil, fmt.Errorf("describe cluster: %w", failed)
		case again:
			s = c.known.Search(c.Patience)
			continue
		case err == nil && answer.IsLeader:
			c.known.SetLeader(addr)
			return answer, nil
		case err == nil:
			follower = answer
			err = &Error{Code: codeNotLeader, Text: addr + " does not lead", Leader: answer.Leader, Addr: answer.Addr}
		case !retryable(err):
			return nil, fmt.Errorf("describe cluster: %w", err)
		}
		c.failed(s, addr, err)
	}
}
