package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// errNoBrowser reports that the tests in a browser cannot run here.
var errNoBrowser = errors.New("the tests in a browser cannot run")

// browserOutput has the screenshots of the pages.
const browserOutput = ".ci/output/pages"

// openPages runs the tests of integration/browser. The answer has a line for each test that has passed. TestImages checks
// nothing: it draws the images of the docs.
func openPages(ctx context.Context) (answers, error) {
	shots, err := filepath.Abs(browserOutput)
	if err == nil {
		err = os.MkdirAll(shots, 0o777)
	}
	if err != nil {
		return answers{}, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-vet=off", "-timeout", "30m", "-skip", "^TestImages$", ".", "-args", "-screenshots", shots)
	cmd.Dir = "integration/browser"
	var failures bytes.Buffer
	cmd.Stderr = &failures
	out, runErr := cmd.Output()
	a, skips, texts := answers{}, []string{}, make(map[string]string)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var event struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			continue // not from a test
		}
		switch texts[event.Test] += event.Output; {
		case event.Test == "":
		case event.Action == "pass":
			a.lines++
		case event.Action == "skip":
			skips = append(skips, strings.TrimSpace(texts[event.Test]))
		case event.Action == "fail":
			a.differences = append(a.differences, fmt.Sprintf("%s\n%s", event.Test, texts[event.Test]))
		}
	}
	switch {
	case runErr != nil && len(a.differences) == 0:
		return answers{}, fmt.Errorf("%w: %w\n%s%s", errNoBrowser, runErr, failures.Bytes(), texts[""])
	case a.lines == 0 && len(a.differences) == 0:
		return answers{}, fmt.Errorf("%w: %s", errNoBrowser, strings.Join(skips, "\n"))
	}
	for _, skip := range skips { // such as axe-core, without npm
		a.differences = append(a.differences, "skipped: "+skip)
	}
	a.version = browserVersion(ctx)
	return a, nil
}

// browserVersion is the version that the browser of the tests prints, as in "Chromium 156.0.8078.79 built on ...".
func browserVersion(ctx context.Context) string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		out, err := exec.CommandContext(ctx, name, "--version").Output()
		if err != nil {
			continue
		}
		for _, word := range strings.Fields(string(out)) {
			if strings.Contains(word, ".") {
				return word
			}
		}
	}
	return ""
}
