package hdfs_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// connections counts connections to a daemon, from the given processes or this one.
func connections(t *testing.T, d *minicluster.Daemon, pids ...string) (n int) {
	t.Helper()
	return connectionsTo(t, d.Port, pids...)
}

func connectionsTo(t *testing.T, port int, pids ...string) (n int) {
	t.Helper()
	if len(pids) == 0 {
		pids = []string{"self"}
	}
	own := make(map[string]bool)
	for _, pid := range pids {
		links, err := filepath.Glob("/proc/" + pid + "/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			if to, err := os.Readlink(link); err == nil {
				own[to] = true
			}
		}
	}
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		t.Skip(err)
	}
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", port)) && own["socket:["+fields[9]+"]"] {
			n++
		}
	}
	return n
}
