package jobtracker

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/dfstest"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

const stagingURL = "mem://s/staging"

// TestStagedAsOwner: users stage in directories of their own, which other users cannot read. The job
// tracker reads and removes the files as the job's owner, and only so.
func TestStagedAsOwner(t *testing.T) {
	f := dfstest.Users(mem.New(1<<20), "quern", nil)
	if shared, err := ShareStaging(f, stagingURL); err != nil || !shared {
		t.Fatal(shared, err)
	}
	if _, _, err := NewCluster(f, stagingURL); err != nil {
		t.Fatal(err)
	}
	ann, bob := f.(dfs.Users).ActAs("ann"), f.(dfs.Users).ActAs("bob")
	own := wire.UserStaging(stagingURL, "ann")
	if err := ann.(dfs.Users).MakeOwn(own); err != nil {
		t.Fatal(err)
	}
	sub := submission("", 1)
	sub.Owner = "ann"
	if err := client.Stage(ann, own, &sub); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{own, sub.Staging} {
		if _, err := bob.List(name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("bob reads %s: %v", name, err)
		}
	}
	s := start(t, func(c *Config) {
		c.FS, c.Staging, c.AsOwner = f, stagingURL, true
		c.ReadSplits = func(f dfs.FS, staging string, _ wire.JobID) ([]core.Split, uint64, error) {
			_, err := f.List(staging)
			return make([]core.Split, 5), splitsHash, err
		}
	})
	go attach(t, s, "t1", 1, 5).run()
	stolen := sub
	stolen.Key = "OTHER"
	stolen.Staging = own + "/OTHER"
	for _, theirs := range []wire.Submission{sub, stolen} {
		if _, err := s.Submit(testContext(t), core.Caller{Name: "bob"}, theirs); err == nil || !strings.Contains(err.Error(), "below its owner's directory") {
			t.Errorf("bob submits from ann's directory: %v", err)
		}
	}
	ids, err := s.Submit(testContext(t), core.Caller{Name: "ann"}, sub)
	if err != nil {
		t.Fatal(err)
	}
	if last := finish(t, s, ids)[0]; last.State != wire.Succeeded {
		t.Errorf("%v, %s", last.State, last.Error)
	}
	waitFor(t, "the staging directory to be removed", func() bool {
		_, err := ann.Stat(sub.Staging)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// TestShareStaging: a directory that another user has made before is refused to its user, and sticky
// bits keep users from each other's directories.
func TestShareStaging(t *testing.T) {
	if shared, err := ShareStaging(mem.New(1<<20), stagingURL); shared || err != nil {
		t.Errorf("without users: %t, %v", shared, err)
	}
	f := dfstest.Users(mem.New(1<<20), "quern", nil)
	if _, err := ShareStaging(f, stagingURL); err != nil {
		t.Fatal(err)
	}
	if _, err := ShareStaging(f, stagingURL); err != nil {
		t.Errorf("again: %v", err)
	}
	ann, eve := f.(dfs.Users).ActAs("ann"), f.(dfs.Users).ActAs("eve")
	if err := eve.Mkdir(wire.UserStaging(stagingURL, "ann")); err != nil {
		t.Fatal(err)
	}
	if err := ann.(dfs.Users).MakeOwn(wire.UserStaging(stagingURL, "ann")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a directory of eve's: %v", err)
	}
	if err := ann.(dfs.Users).MakeOwn(wire.UserStaging(stagingURL, "carl")); err != nil {
		t.Fatal(err)
	}
	if err := eve.RemoveAll(wire.UserStaging(stagingURL, "carl")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("eve removes a directory of ann's: %v", err)
	}
	if err := eve.Mkdir(dfs.Join(stagingURL, "KEY")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("eve stages beside the daemons' files: %v", err)
	}
}

// TestShareStagingOfAnother: a staging directory that another user has made with all permissions is refused. Its owner
// could replace the directories of users.
func TestShareStagingOfAnother(t *testing.T) {
	f := dfstest.Users(mem.New(1<<20), "quern", nil)
	if err := f.(dfs.Users).ActAs("eve").(dfs.Users).Share(stagingURL, usersBits); err != nil {
		t.Fatal(err)
	}
	if _, err := ShareStaging(f, stagingURL); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the staging directory belongs to eve: %v", err)
	}
}

// TestCleanUsers: old files of users, and their drivers' sessions, are removed as these users. A directory that another user has made
// is left alone, since acting as the user with its name could do harm.
func TestCleanUsers(t *testing.T) {
	f := dfstest.Users(mem.New(1<<20), "quern", nil)
	if _, err := ShareStaging(f, stagingURL); err != nil {
		t.Fatal(err)
	}
	users := f.(dfs.Users)
	var staged []string
	for user, dir := range map[string]string{"ann": "ann", "eve": "hdfs"} {
		u, own := users.ActAs(user), wire.UserStaging(stagingURL, dir)
		if err := u.(dfs.Users).MakeOwn(own); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			sub := submission("", 1)
			if err := client.Stage(u, own, &sub); err != nil {
				t.Fatal(err)
			}
			staged = append(staged, sub.Staging)
		}
		session := dfs.Join(own, wire.StagingSessions, "old")
		if err := u.MkdirAll(session); err != nil {
			t.Fatal(err)
		}
		staged = append(staged, session)
	}
	exists := func(name string) bool {
		user := strings.Split(strings.TrimPrefix(name, wire.UserStaging(stagingURL, "")), "/")[0]
		_, err := users.ActAs(map[string]string{"hdfs": "eve"}[user] + map[string]string{"ann": "ann"}[user]).Stat(name)
		return err == nil
	}
	used := ""
	for _, name := range staged {
		if strings.HasPrefix(name, wire.UserStaging(stagingURL, "ann")) && dfs.Base(name) != "old" {
			used = name
		}
	}
	s := &Server{cfg: Config{FS: f, Staging: stagingURL, AsOwner: true, Logger: slog.New(slog.DiscardHandler)}}
	err := s.cleanUsers(core.Tidy{Submissions: map[string]bool{dfs.Base(used): true}}, time.Now().Add(365*24*time.Hour))
	if err == nil || !strings.Contains(err.Error(), "users/hdfs belongs to eve") {
		t.Error(err)
	}
	// A user can make any number of directories.
	for n := range 3 * maxUserErrors {
		for _, name := range []string{"carl@%d", "no name %d"} {
			if err := users.ActAs("eve").Mkdir(wire.UserStaging(stagingURL, fmt.Sprintf(name, n))); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = s.cleanUsers(core.Tidy{Submissions: map[string]bool{dfs.Base(used): true}}, time.Now().Add(365*24*time.Hour))
	if err == nil || strings.Count(err.Error(), "\n") != maxUserErrors || strings.Contains(err.Error(), "no name") || !strings.Contains(err.Error(), "of 21 more users") {
		t.Errorf("after many directories: %v", err)
	}
	for _, name := range staged {
		kept := name == used || !strings.HasPrefix(name, wire.UserStaging(stagingURL, "ann"))
		if exists(name) != kept {
			t.Errorf("%s exists: %t", name, !kept)
		}
	}
}

// TestExpiredSessionOfOwner: with -isolation user, jobs own the results in a session. Its removal follows no link that they have put
// there, and no permission of theirs prevents it. A session within its lease stays.
func TestExpiredSessionOfOwner(t *testing.T) {
	top := t.TempDir()
	outside, staging := filepath.Join(top, "outside"), filepath.Join(top, "staging")
	old, recent := filepath.Join(staging, wire.StagingSessions, "ann~old"), filepath.Join(staging, wire.StagingSessions, "ann~recent")
	now := time.Now()
	for _, session := range []string{old, recent} {
		results := filepath.Join(session, wire.SessionResults)
		err := errors.Join(os.MkdirAll(filepath.Join(results, "1", "sub"), 0o700), os.MkdirAll(outside, 0o700), os.WriteFile(outside+"/file", nil, 0o600),
			os.Symlink(outside, results+"/2"), os.Symlink("../../../../../outside", results+"/1/sub/3"), os.Link(outside+"/file", results+"/1/part"))
		if os.Geteuid() == 0 {
			err = errors.Join(err, os.Chown(results+"/1", 23001, 23001), os.Chmod(results+"/1", 0), os.Chown(results, 23001, 23001), os.Chmod(results, 0))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	past := now.Add(-wire.SessionLease - time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if err := removeSessions(local.New(), "file://"+staging, now, nil); err != nil {
		t.Error(err)
	}
	_, errOld := os.Lstat(old)
	_, errRecent := os.Lstat(recent)
	_, errFile := os.Lstat(outside + "/file")
	if !errors.Is(errOld, fs.ErrNotExist) || errRecent != nil || errFile != nil {
		t.Errorf("expired %v, recent %v, outside %v", errOld, errRecent, errFile)
	}
}

// TestSessionOfUnfinishedJob: while a job of a driver has not ended, the driver's session stays, also if the driver died long ago.
// Afterwards it stays for the whole lease, and the driver can take it up.
func TestSessionOfUnfinishedJob(t *testing.T) {
	sessions := filepath.Join(t.TempDir(), wire.StagingSessions)
	session, other := filepath.Join(sessions, "ann~s"), filepath.Join(sessions, "bob~s")
	now := time.Now()
	past := now.Add(-2 * wire.SessionLease)
	for _, dir := range []string{session, other} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, wire.SessionResults, "1"), 0o700), os.Chtimes(dir, past, past)); err != nil {
			t.Fatal(err)
		}
	}
	step := wire.Step{Result: "file://" + session + "/" + wire.SessionResults + "/2"}
	exists := func(at time.Time, used map[string]bool) (found [2]bool) {
		if err := removeSessions(local.New(), "file://"+filepath.Dir(sessions), at, used); err != nil {
			t.Error(err)
		}
		for i, dir := range []string{session, other} {
			_, err := os.Lstat(dir)
			found[i] = err == nil
		}
		return found
	}
	if got := exists(now, map[string]bool{step.Session(): true, "gone": true}); got != [2]bool{true, false} {
		t.Errorf("while the job runs: %v", got)
	}
	if files, err := os.ReadDir(session); err != nil || len(files) != 1 {
		t.Errorf("files in the session: %v, %v", files, err)
	}
	if got := exists(now.Add(wire.SessionLease-time.Hour), nil); !got[0] {
		t.Error("the session is removed soon after the job's end")
	}
	if got := exists(now.Add(wire.SessionLease+time.Hour), nil); got[0] {
		t.Error("the session has not expired a day after the job's end")
	}
}
