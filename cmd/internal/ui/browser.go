package ui

import (
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// OpenBrowser starts the user's browser with a file that leads to the address: other users of the
// machine see the arguments of processes, but cannot read the file. It does not wait for the browser.
func OpenBrowser(url string) (remove func(), err error) {
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
