package hdfs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/trial"
)

// Row 29: the NameNode of the staging directory is in safe mode while a cluster starts and a job is
// submitted. It restarts during that job. It is paused while a job tracker restarts and another
// job is submitted. Both jobs succeed.
func TestJobsNameNodeUnavailable(t *testing.T) {
	c := cluster(t)
	nn := c.NameNodes[0]
	p := newPlatform(t, c)
	content := text(8 * blockSize)
	in := p.put("in", content)

	r := newRelay(t, nn.Addr(), nil)
	ended := p.safeMode(r)
	p.start(daemonShape{traces: true, jobTrackers: 1, nodes: c.DataNodes, slots: 1, staging: r.url(dfs.Join(p.top, "staging"))})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	ended = p.safeMode(r)
	j := p.paced(in, "-pause-early", "-gate")
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	j.AwaitTraces("m", "began", 4)
	p.kill(nn)
	j.OpenGate()
	if err := nn.Start(); err != nil {
		t.Fatal(err)
	}
	j.Succeed()
	p.checkCounts(j.Out, content)

	jt := p.daemons.JobTrackers[0]
	if err := jt.Kill(); err != nil {
		t.Fatal(err)
	}
	p.pause(nn)
	if err := errors.Join(jt.Start(), jt.Ready(p.ctx)); err != nil {
		t.Fatal(err)
	}
	j = p.paced(in)
	j.Await("the client's connection to the NameNode", func() bool { return connectionsTo(t, r.port(), fmt.Sprint(j.Pid())) > 0 })
	if err := nn.Continue(); err != nil {
		t.Fatal(err)
	}
	j.Succeed()
	p.checkCounts(j.Out, content)
}

// pause pauses one of HDFS's daemons and continues it when the test ends.
func (p *platform) pause(d *minicluster.Daemon) {
	p.t.Helper()
	if err := d.Pause(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := d.Continue(); err != nil {
			p.t.Error(err)
		}
	})
}

// kill kills one of HDFS's daemons and restarts it when the test ends.
func (p *platform) kill(d *minicluster.Daemon) {
	p.t.Helper()
	if err := d.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { restart(p.t, p.hdfs, d) })
}

// safeMode lets the NameNode enter safe mode, and leave it after it has refused to create a
// directory. The channel then gets the error.
func (p *platform) safeMode(r *relay) <-chan error {
	p.t.Helper()
	before, _ := r.calls("mkdirs")
	if _, err := p.hdfs.Admin(p.ctx, "-safemode", "enter"); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { // also after a failure, for the next tests
		if !p.t.Failed() {
			return
		}
		if _, err := p.hdfs.Admin(context.Background(), "-safemode", "leave"); err != nil {
			p.t.Error(err)
		}
	})
	ended := make(chan error, 1)
	go func() {
		refused := trial.Within(trial.Deadline, func() bool {
			n, _ := r.calls("mkdirs")
			return n > before
		})
		_, err := p.hdfs.Admin(p.ctx, "-safemode", "leave")
		if !refused {
			err = errors.Join(errors.New("no call was refused because of safe mode"), err)
		}
		ended <- err
	}()
	return ended
}
