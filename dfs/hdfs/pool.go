package hdfs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	client "github.com/colinmarc/hdfs/v2"
)

const (
	maxClients = 4               // of a cluster, each with a connection
	idleTime   = 5 * time.Second // after which an unused one is closed
	leaseTime  = 15 * time.Second
)

// cluster is one HDFS: what URLs of one authority name.
type cluster struct {
	fs        *FS
	conf      Conf
	authority string

	connectFrom func(ctx context.Context, network, addr string) (net.Conn, error)

	name      string // under which files are written
	byName    bool   // DataNodes are dialled by host name
	protected bool   // what DataNodes say is wrapped

	mu       sync.Mutex
	options  client.ClientOptions
	clients  []*conn         // that may be used
	making   int             // that are being made
	made     sync.Cond       // told when that has ended
	answered bool            // a NameNode has, once
	active   string          // that one
	reaper   *time.Timer     // set while clients has any
	writers  int             // open ones
	renewal  *time.Timer     // set while there are writers
	creating map[string]bool // paths that this process writes now
	bad      map[string]badNode
}

// conn is a client of the library's: one connection, one call at a time.
type conn struct {
	client *client.Client
	remote remote
	users  int // that hold it, under the cluster's lock
	gone   bool
	idle   time.Time // since when

	mu   sync.Mutex
	last *nameConn
	seen error // of dialling
}

// dial dials NameNodes and DataNodes.
func (c *cluster) dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, min(dialTimeout, c.fs.options.Timeout))
	defer cancel()
	return c.connectFrom(ctx, "tcp", addr)
}

func (c *cluster) dialer(own *conn) dialFunc {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		raw, err := c.dial(ctx, addr)
		own.mu.Lock()
		defer own.mu.Unlock()
		if err != nil {
			var unknown *net.DNSError
			if errors.As(err, &unknown) && unknown.IsNotFound {
				err = fmt.Errorf("%s: %w (HADOOP_CONF_DIR)", addr, errNameservice)
			}
			own.seen = fmt.Errorf("NameNode: %w", err)
			return nil, own.seen
		}
		own.last, own.seen = &nameConn{Conn: raw, addr: addr, timeout: c.fs.options.Timeout}, nil
		return own.last, nil
	}
}

// acquire gives the least used client, or a new one.
func (c *cluster) acquire() (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var best *conn
		for _, one := range c.clients {
			if best == nil || one.users < best.users {
				best = one
			}
		}
		full := len(c.clients)+c.making >= maxClients
		if best != nil && (best.users == 0 || full) {
			best.users++
			return best, nil
		}
		if !full {
			break
		}
		c.made.Wait()
	}
	c.making++
	options := c.options
	if i := slices.Index(options.Addresses, c.active); i > 0 { // the one that was active first
		options.Addresses = slices.Concat(options.Addresses[i:], options.Addresses[:i])
	}
	c.mu.Unlock()
	fresh, err := c.connect(options)
	c.mu.Lock()
	c.making--
	c.made.Broadcast()
	if err != nil {
		return nil, err
	}
	c.answered, c.active = true, fresh.last.addr
	c.clients = append(c.clients, fresh)
	if c.reaper == nil {
		c.reaper = time.AfterFunc(idleTime/4, c.reap)
	}
	return fresh, nil
}

// connect makes a client, which has one user.
func (c *cluster) connect(options client.ClientOptions) (*conn, error) {
	fresh := &conn{users: 1}
	options.NamenodeDialFunc = c.dialer(fresh)
	made, err := client.NewClient(options)
	if err != nil {
		_, err = judge(err, fresh.why())
		return nil, err
	}
	fresh.client, fresh.remote = made, adopt(made, c.name)
	// Asked for now, since views could not share an answer that comes later.
	if _, err = made.ServerDefaults(); err == nil {
		return fresh, nil
	}
	why := fresh.why()
	fresh.close()
	if answer, ok := remoteError(err); ok {
		_, err = judgeAnswer(answer)
	} else if why != nil {
		err = why
	}
	return nil, err
}

// release ends a use. A client that is broken is used no more.
func (c *cluster) release(one *conn, isBroken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.users--
	one.idle = time.Now()
	if isBroken {
		one.gone = true
		c.clients = slices.DeleteFunc(c.clients, func(o *conn) bool { return o == one })
	}
	if one.gone && one.users == 0 {
		one.close()
	}
}

// reap closes clients that nobody has used for a while.
func (c *cluster) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients = slices.DeleteFunc(c.clients, func(one *conn) bool {
		old := one.users == 0 && time.Since(one.idle) >= idleTime
		if old {
			one.close()
		}
		return old
	})
	c.reaper = nil
	if len(c.clients) > 0 {
		c.reaper = time.AfterFunc(idleTime/4, c.reap)
	}
}

// why is the last error of the connection, or of dialling.
func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen != nil || c.last == nil {
		return c.seen
	}
	return c.last.why()
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		c.last.Close()
	}
}

// attempts is what try tells its caller.
type attempts struct {
	doubt bool // an earlier one may have been done although it failed
}

// try calls until there is an answer or patience ends. A NameNode that has never
// answered is waited for less long: it may be an address where none is.
func (c *cluster) try(op func(one *conn, before attempts) error) error {
	var before attempts
	began := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		what, err := c.once(op, before)
		if what == final || what == never {
			return err
		}
		if what == broken {
			before.doubt = true
		}
		if time.Since(began)+pause > c.patience() {
			return err
		}
		// Many that wait for one NameNode do not come back at once.
		if e := c.fs.wait(pause/2 + rand.N(pause)); e != nil {
			return errors.Join(err, e)
		}
	}
}

func (c *cluster) once(op func(*conn, attempts) error, before attempts) (verdict, error) {
	one, err := c.acquire()
	if err != nil {
		var answer *refused
		if errors.As(err, &answer) && (answer.is == nil || answer.is == errSafeMode) {
			return later, err
		}
		what, err := judge(err, err)
		if what == broken {
			what = later // nothing was asked yet
		}
		return what, err
	}
	err = op(one, before)
	if err == nil {
		c.release(one, false)
		return final, nil
	}
	if _, ok := errors.AsType[*settled](err); ok {
		c.release(one, false)
		return final, err
	}
	what, err := judge(err, one.why())
	c.release(one, what != final)
	return what, err
}

// settled is an error that is no answer of a NameNode's and needs no other try.
type settled struct{ error }

func (s *settled) Unwrap() error { return s.error }

func (c *cluster) patience() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered {
		return c.fs.options.Patience
	}
	return c.fs.options.FirstPatience
}

// wait pauses, unless the FS is closed.
func (f *FS) wait(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-f.closed:
		return net.ErrClosed
	}
}

// writing counts writers; while there are any, their lease is renewed.
func (c *cluster) writing(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writers += change
	if c.writers > 0 && c.renewal == nil {
		c.renewal = time.AfterFunc(leaseTime, c.renew)
	}
}

func (c *cluster) renew() {
	c.mu.Lock()
	c.renewal = nil
	idle := c.writers == 0
	c.mu.Unlock()
	if idle {
		return
	}
	// A failure is met by the writers too; the lease holds for a minute and more.
	_ = c.try(func(one *conn, _ attempts) error {
		return one.remote.Execute("renewLease", message("RenewLeaseRequest", "clientName", c.name), message("RenewLeaseResponse"))
	})
	c.writing(0)
}
