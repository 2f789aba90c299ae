package compose_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/integration/compose/stack"
	"github.com/quernmr/quern/integration/trial"
)

// maxImage limits the size of a daemon's image.
const maxImage = 30 << 20

// images: images are small, name a user and have the label of their revision. Nothing runs as root or
// can get capabilities, and the root file systems of daemons are read-only.
func images(c *cluster) {
	for _, target := range stack.Targets() {
		image := c.Image(target)
		size, err := strconv.Atoi(c.docker("image", "inspect", "-f", "{{.Size}}", image))
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Logf("image %s: %.1f MB", image, float64(size)/1e6)
		if target != "client" && size > maxImage {
			c.t.Errorf("image %s has %d bytes, at most %d", image, size, maxImage)
		}
		if user := c.docker("image", "inspect", "-f", "{{.Config.User}}", image); user != "65532:65532" {
			c.t.Errorf("image %s has the user %q", image, user)
		}
		label := c.docker("image", "inspect", "-f", `{{index .Config.Labels "org.opencontainers.image.revision"}}`, image)
		printed := c.docker("run", "--rm", "--network", "none", image, "-version")
		if label == "" || !strings.Contains(printed, label[:min(len(label), 12)]) {
			c.t.Errorf("image %s has the label %q and prints %q", image, label, printed)
		}
	}
	for _, service := range append(daemons(), "namenode", "datanode1", "client", "names") {
		if root := uid(c, c.pid(service)); root == "0" {
			c.t.Errorf("%s runs as root", service)
		}
		if caps := field(c, c.pid(service), "CapBnd:"); caps != "0000000000000000" {
			c.t.Errorf("%s may get the capabilities %s", service, caps)
		}
	}
	for _, service := range daemons() {
		if c.inspect(service, "{{.HostConfig.ReadonlyRootfs}}") != "true" {
			c.t.Errorf("%s can write everywhere", service)
		}
	}
	inspect := []string{"inspect", "-f", "{{.State.Health.Status}}"}
	for _, service := range daemons() {
		inspect = append(inspect, c.container(service))
	}
	c.await("daemons with good health checks", func() bool {
		return !slices.ContainsFunc(strings.Fields(c.docker(inspect...)), func(status string) bool { return status != "healthy" })
	})
}

func daemons() []string { return append(stack.JobTrackers(), stack.TaskTrackers()...) }

// uid returns the user of a process.
func uid(c *cluster, pid string) string {
	c.t.Helper()
	return field(c, pid, "Uid:")
}

// field returns the first word of a field in /proc/PID/status.
func field(c *cluster, pid, name string) string {
	c.t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.Fields(rest)[0]
		}
	}
	c.t.Fatalf("process %s has no %s", pid, name)
	return ""
}

// idleFor is the time for measuring idle daemons, except with -short. maxIdle limits the memory
// of each.
const (
	idleFor = 20 * time.Second
	maxIdle = 40 << 20
)

// idle measures the memory and processor time of idle daemons.
func idle(c *cluster) {
	before := make(map[string]time.Duration)
	for _, service := range daemons() {
		before[service] = cpu(c, c.pid(service))
	}
	began := time.Now()
	if !testing.Short() {
		<-time.After(idleFor) // the measurement needs time, not an event
	}
	for _, service := range daemons() {
		pid := c.pid(service)
		used := cpu(c, pid) - before[service]
		var kilobytes int
		if !trial.Poll(trial.Deadline, time.Second, func() bool { // Go returns the memory of earlier jobs with a delay
			var err error
			if kilobytes, err = strconv.Atoi(field(c, pid, "VmRSS:")); err != nil {
				c.t.Fatal(err)
			}
			return kilobytes<<10 <= maxIdle
		}) {
			c.t.Errorf("%s has %d kB in memory, at most %d", service, kilobytes, maxIdle>>10)
		}
		c.t.Logf("idle %s: %.1f MB in memory, %v of a CPU in %v", service, float64(kilobytes)*1024/1e6, used, time.Since(began).Round(time.Millisecond))
	}
}

// cpu returns the processor time of a process.
func cpu(c *cluster, pid string) time.Duration {
	c.t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		c.t.Fatal(err)
	}
	var user, system int64
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		c.t.Fatal(err)
	}
	const tick = 10 * time.Millisecond // Linux's USER_HZ is 100 everywhere
	return time.Duration(user+system) * tick
}
