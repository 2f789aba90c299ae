package minicluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Ready waits until a NameNode is active, is not in safe mode, and has this many live DataNodes.
func (c *Cluster) Ready(ctx context.Context, d *Daemon, dataNodes int) error {
	return d.poll(ctx, fmt.Sprintf("is ready with %d DataNodes", dataNodes), func() bool {
		state, err := d.State(ctx)
		return err == nil && state.Active && state.SafeMode == "" && state.Live == dataNodes
	})
}

// AwaitDataNodes waits until a NameNode has this many live DataNodes.
func (c *Cluster) AwaitDataNodes(ctx context.Context, d *Daemon, n int) error {
	return d.poll(ctx, fmt.Sprintf("counts %d DataNodes", n), func() bool {
		state, err := d.State(ctx)
		return err == nil && state.Live == n
	})
}

// State is the status of a NameNode.
type State struct {
	Active   bool
	SafeMode string // reason of the safe mode; empty: off
	Live     int    // DataNodes
}

// State returns the status of a NameNode.
func (d *Daemon) State(ctx context.Context) (s State, err error) {
	var system struct{ NumLiveDataNodes int }
	var info struct{ Safemode string }
	var status struct{ State string }
	for bean, into := range map[string]any{"FSNamesystemState": &system, "NameNodeInfo": &info, "NameNodeStatus": &status} {
		if err := d.bean(ctx, bean, into); err != nil {
			return s, err
		}
	}
	return State{Active: status.State == "active", SafeMode: info.Safemode, Live: system.NumLiveDataNodes}, nil
}

// bean reads a management bean of a daemon.
func (d *Daemon) bean(ctx context.Context, name string, into any) error {
	body, err := d.Get(ctx, "/jmx?qry="+url.QueryEscape("Hadoop:service=NameNode,name="+name))
	if err != nil {
		return err
	}
	var answer struct{ Beans []json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil {
		return err
	}
	if len(answer.Beans) != 1 {
		return fmt.Errorf("%s has %d beans %s", d.ID, len(answer.Beans), name)
	}
	return json.Unmarshal(answer.Beans[0], into)
}

// Get reads a web page of a daemon.
func (d *Daemon) Get(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.HTTPAddr()+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", req.URL, resp.Status, body)
	}
	return body, err
}
