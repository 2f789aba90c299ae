package cluster_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
)

// Metrics are read as Prometheus reads them, by docs/monitoring/prometheus.yml: with a certificate of the role
// metrics, and with the daemon's certificate checked by the authority and by the DNS name of its role. They
// count a job that has run. A trace has its attempts.
func TestMetrics(t *testing.T) {
	c := start(t, withTLS, func(cfg *processes.Config) { cfg.JobTrackers, cfg.TaskTrackers = 1, 2 })
	j := c.paced(4)
	j.checkSuccess()
	if err := c.Issue(identity.Metrics, "prometheus", time.Now()); err != nil {
		t.Fatal(err)
	}
	dir := c.Certs(identity.Metrics, "prometheus")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, identity.CertFile), filepath.Join(dir, identity.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(dir, identity.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	scrape := func(d *processes.Daemon, role identity.Role) (string, error) {
		config := &tls.Config{RootCAs: roots, ServerName: role.DNSName(), Certificates: []tls.Certificate{pair}}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}, Timeout: trial.Deadline}
		answer, err := client.Get("https://" + d.Addr + "/metrics")
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return string(text), err
	}
	value := func(text, sample string) float64 {
		t.Helper()
		found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(sample) + ` (\S+)$`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("no sample %s in\n%s", sample, text)
		}
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	leader, err := scrape(c.JobTrackers[0], identity.JobTracker)
	if err != nil {
		t.Fatal(err)
	}
	for sample, want := range map[string]float64{
		"quern_jobtracker_leader": 1, "quern_tasktrackers_usable": 2, `quern_jobs_ended_total{state="succeeded"}`: 1,
		`quern_slots{phase="map"}`: 4, `quern_slots_used{phase="map"}`: 0, `quern_attempts_ended_total{kind="map",outcome="succeeded"}`: 4,
		`quern_task_seconds_count{phase="map"}`: 4, "quern_log_voters": 1,
	} {
		if got := value(leader, sample); got != want {
			t.Errorf("%s is %v, want %v", sample, got, want)
		}
	}
	for _, sample := range []string{"quern_jobtracker_step_seconds_count", "quern_log_commit_seconds_count", "quern_log_written_bytes_total"} {
		if value(leader, sample) == 0 {
			t.Errorf("%s is 0", sample)
		}
	}
	fetched, served := 0.0, 0.0
	for _, d := range c.TaskTrackers {
		text, err := scrape(d, identity.TaskTracker)
		if err != nil {
			t.Fatal(err)
		}
		fetched += value(text, "quern_shuffle_fetched_bytes_total")
		served += value(text, "quern_shuffle_served_bytes_total")
		if value(text, "quern_tasktracker_registered") != 1 || value(text, `quern_tasktracker_slots{phase="reduce"}`) != 2 {
			t.Errorf("%s has\n%s", d.ID, text)
		}
	}
	if fetched != served {
		t.Errorf("task trackers have fetched %v bytes, and sent %v", fetched, served)
	}
	if _, err := scrape(c.TaskTrackers[0], identity.JobTracker); err == nil {
		t.Error("a task tracker passes for a job tracker")
	}
	var trace struct {
		Events []struct {
			Name string `json:"name"`
			Type string `json:"ph"`
		} `json:"traceEvents"`
	}
	text := c.mrsubmit("trace", jobID.FindString(c.mrsubmit("history").Succeed())).Succeed()
	if err := json.Unmarshal([]byte(text), &trace); err != nil {
		t.Fatal(err)
	}
	maps := 0
	for _, e := range trace.Events {
		if e.Type == "X" && regexp.MustCompile(`^attempt_.*_m_`).MatchString(e.Name) {
			maps++
		}
	}
	if maps != 4 {
		t.Errorf("the trace has %d attempts of maps, want 4:\n%s", maps, text)
	}
}
