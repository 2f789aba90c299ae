package tasktracker

import (
	"testing"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestSharedSideFiles: submissions of an owner share directories for copies of archives, one for each path. Those of other
// owners and accounts have directories of their own. Names that lead out of an attempt's directory have none.
func TestSharedSideFiles(t *testing.T) {
	var l loop
	n := 0
	use := func(owner string, a *account.Account, files map[string]string) (dirs map[string]string) {
		n++
		c := core.StartWorker{Staging: "file:///s/" + string(rune('a'+n)), Owner: owner}
		dirs = make(map[string]string)
		for _, s := range l.shareSideFiles(c, &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{{}, {Files: files}}}}, a, []string{"/disk"}) {
			if s.Job != 1 {
				t.Errorf("%v is of job 1", s)
			}
			dirs[s.Name] = s.Dir
		}
		return dirs
	}
	files := map[string]string{"d/": "hdfs://n/d.zip", "e/": "hdfs://n/e.zip", "file": "hdfs://n/f", "../x/": "hdfs://n/d.zip", "../": "hdfs://n/d.zip", "a/b/": "hdfs://n/d.zip"}
	first := use("ann", nil, files)
	if len(first) != 2 || first["d"] == first["e"] {
		t.Errorf("directories %v", first)
	}
	if got := use("ann", nil, map[string]string{"other/": "hdfs://n/d.zip"}); got["other"] != first["d"] {
		t.Errorf("another job of the owner has %v, want %s", got, first["d"])
	}
	seen := map[string]bool{first["d"]: true}
	for _, other := range []struct {
		owner   string
		account *account.Account
	}{{"bob", nil}, {"", nil}, {"ann", &account.Account{UID: 1}}, {"ann", &account.Account{UID: 2}}} {
		dir := use(other.owner, other.account, files)["d"]
		if dir == "" || seen[dir] {
			t.Errorf("%v shares %q", other, dir)
		}
		seen[dir] = true
	}
}
