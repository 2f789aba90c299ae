package hdfs

import (
	"testing"
	"time"

	client "github.com/colinmarc/hdfs/v2"
)

// TestInside checks the unexported parts of the library that this package uses.
func TestInside(t *testing.T) {
	original := &client.Client{}
	conn := private(original, "namenode").Elem()
	if _, ok := conn.Interface().(remote); !ok {
		t.Errorf("%s is not a connection to NameNodes", conn.Type())
	}
	for _, name := range []string{"ClientName", "done"} {
		if _, ok := conn.Type().Elem().FieldByName(name); !ok {
			t.Errorf("%s has no %s", conn.Type(), name)
		}
	}
	if v := withDialer(original, (&link{}).dial); v == original || private(v, "options").Interface().(*client.ClientOptions).DatanodeDialFunc == nil {
		t.Error("withDialer sets no DatanodeDialFunc of its own")
	}
	if private(original, "options").Interface().(*client.ClientOptions).DatanodeDialFunc != nil {
		t.Error("withDialer changed its argument's DatanodeDialFunc")
	}
	r := &client.FileReader{}
	readByID(r, 7)
	if got := private(r, "name").Elem().String(); got != "/.reserved/.inodes/7" {
		t.Errorf("the reader's name is %s", got)
	}
}

// TestForgetFailures checks that only older failures are forgotten.
func TestForgetFailures(t *testing.T) {
	now := time.Now()
	record := func(addr string, at time.Time) {
		datanodeFailuresLock.Lock()
		defer datanodeFailuresLock.Unlock()
		datanodeFailures[addr] = at
	}
	record("old:1", now.Add(-time.Hour))
	record("new:1", now)
	forgetFailures(now.Add(-time.Minute))
	datanodeFailuresLock.Lock()
	defer datanodeFailuresLock.Unlock()
	if _, old := datanodeFailures["old:1"]; old {
		t.Error("an old failure was kept")
	}
	if _, kept := datanodeFailures["new:1"]; !kept {
		t.Error("a new failure was removed")
	}
	delete(datanodeFailures, "new:1")
}
