package main

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/quernmr/quern/cmd/internal/ui"
	"github.com/quernmr/quern/identity"
)

const uiHelp = `Show the cluster's pages in a browser. mrsubmit serves them at a loopback address, with your
certificate, until it is interrupted. It prints the address, which works for one browser.`

// showUI serves the cluster's pages to a browser on this machine.
func (q *query) showUI(ctx context.Context) error {
	transport := new(http.Transport)
	secure := q.identity.Dialer(identity.JobTracker)
	if secure != nil {
		identity.Secure(transport, secure)
	}
	p, err := ui.Listen(q.port, ui.Config{Leader: q.leader, Transport: transport, Secure: secure != nil})
	if err != nil {
		return err
	}
	defer p.Close()
	if _, err := q.leader(ctx); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- p.Serve() }()
	if _, err := fmt.Fprintln(q.stdout, p.URL()); err != nil {
		return err
	}
	if !q.noBrowser {
		remove, err := openBrowser(p.URL())
		if err != nil {
			fmt.Fprintf(q.stderr, "mrsubmit ui: no browser was opened (%v): open the address above\n", err)
		} else {
			defer remove()
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	}
}

// leader returns the address of the leader's API.
func (q *query) leader(ctx context.Context) (string, error) {
	c, err := q.cluster.Cluster(ctx)
	if err != nil {
		return "", err
	}
	return c.Addr, nil
}

// openBrowser starts the user's browser with a file that leads to the address: other users of the
// machine see the arguments of processes, but cannot read the file. It does not wait for the browser.
func openBrowser(url string) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "quern-ui-") // only for this user
	if err != nil {
		return nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	file := filepath.Join(dir, "open.html")
	page := `<!doctype html><title>Quern</title><meta http-equiv="refresh" content="0;url=` + html.EscapeString(url) + `">`
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		remove()
		return nil, err
	}
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	c := exec.Command(name, file)
	if err := c.Start(); err != nil {
		remove()
		return nil, err
	}
	go c.Wait() // reaps it
	return remove, nil
}
