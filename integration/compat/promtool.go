package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"github.com/quernmr/quern/integration/cache"
	"github.com/quernmr/quern/integration/processes"
)

// promtool asks Prometheus's own tool about the files in docs/monitoring and the metrics of real daemons;
// dir is for its files. tools/promtool.mod has the version.
type promtool struct{ dir string }

const monitoring = "docs/monitoring"

// errNoPromtool reports that promtool cannot be built here.
var errNoPromtool = errors.New("promtool cannot be built")

func (p promtool) compared(ctx context.Context) (answers, error) {
	tool, version, err := buildPromtool(ctx)
	if err != nil {
		return answers{}, err
	}
	a := answers{version: "Prometheus " + version}
	ask := func(input string, args ...string) {
		cmd := exec.CommandContext(ctx, tool, args...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if text := strings.TrimSpace(string(out)); err != nil || args[1] == "metrics" && text != "" {
			a.differences = append(a.differences, fmt.Sprintf("promtool %s: %v\n%s", strings.Join(args, " "), err, text))
		}
	}
	ask("", "check", "rules", "--lint-fatal", filepath.Join(monitoring, "rules.yml"))
	ask("", "test", "rules", filepath.Join(monitoring, "rules_test.yml"))
	ask("", "check", "config", "--syntax-only", filepath.Join(monitoring, "prometheus.yml"))
	queries, n, err := p.queries()
	if err != nil {
		return answers{}, err
	}
	ask("", "check", "rules", queries)
	metrics, err := p.metrics(ctx)
	if err != nil {
		return answers{}, err
	}
	for _, text := range metrics {
		ask(text, "check", "metrics")
		n += strings.Count(text, "# HELP quern_")
	}
	rules, err := os.ReadFile(filepath.Join(monitoring, "rules.yml"))
	a.lines = n + bytes.Count(rules, []byte("alert:"))
	return a, err
}

// buildPromtool builds the tool once.
func buildPromtool(ctx context.Context) (file, version string, err error) {
	const mod = "tools/promtool.mod"
	text, err := os.ReadFile(mod)
	if err != nil {
		return "", "", err
	}
	found := regexp.MustCompile(`github.com/prometheus/prometheus v0\.(\d)(\d\d)\.(\d+)`).FindSubmatch(text)
	if found == nil {
		return "", "", fmt.Errorf("%s has no version of Prometheus", mod)
	}
	version = fmt.Sprintf("%s.%s.%s", found[1], strings.TrimPrefix(string(found[2]), "0"), found[3])
	dir, err := cache.Dir("promtool", version+runtime.Version(), func(dir string) error {
		cmd := exec.CommandContext(ctx, "go", "build", "-modfile="+mod, "-tags", "remove_all_sd", "-o", filepath.Join(dir, "promtool"), "github.com/prometheus/prometheus/cmd/promtool")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %w\n%s", errNoPromtool, err, out)
		}
		return nil
	})
	return filepath.Join(dir, "promtool"), version, err
}

// queries writes the dashboard's queries into a file of rules, which promtool parses.
func (p promtool) queries() (file string, n int, err error) {
	text, err := os.ReadFile(filepath.Join(monitoring, "dashboard.json"))
	if err != nil {
		return "", 0, err
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return "", 0, err
	}
	var b bytes.Buffer
	b.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			n++
			query := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			fmt.Fprintf(&b, "      - {record: 'dashboard:%d', expr: '%s'}\n", n, strings.ReplaceAll(query, "'", "''"))
		}
	}
	file = filepath.Join(p.dir, "dashboard.yml")
	return file, n, os.WriteFile(file, b.Bytes(), 0o666)
}

// metrics returns the metrics of a job tracker and a task tracker.
func (p promtool) metrics(ctx context.Context) (texts []string, err error) {
	programs, dir := filepath.Join(p.dir, "programs"), filepath.Join(p.dir, "cluster")
	if err := errors.Join(os.MkdirAll(programs, 0o777), processes.Build(programs)); err != nil {
		return nil, err
	}
	c, err := processes.Start(ctx, processes.Config{Programs: programs, Dir: dir, JobTrackers: 1, TaskTrackers: 1, Insecure: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, d := range c.All() {
		answer, err := http.Get("http://" + d.Addr + "/metrics")
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("metrics of %s: %s, %w", d.ID, answer.Status, err)
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}
