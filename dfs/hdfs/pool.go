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
	maxClients = 4               // per cluster, each with a connection
	idleTime   = 5 * time.Second // an unused client closes after this time
	leaseTime  = 15 * time.Second
)

// cluster is the HDFS of one authority.
type cluster struct {
	fs        *FS
	conf      Conf
	authority string

	connectFrom func(ctx context.Context, network, addr string) (net.Conn, error)

	name      string // client name for writing files
	byName    bool   // DataNodes are dialled by host name
	protected bool   // connections to DataNodes are wrapped

	mu       sync.Mutex
	options  client.ClientOptions
	clients  []*conn         // usable ones
	making   int             // number being created
	made     sync.Cond       // signalled when a creation ends
	answered bool            // a NameNode has responded
	active   string          // address of that NameNode
	reaper   *time.Timer     // set while clients is not empty
	writers  int             // open ones
	renewal  *time.Timer     // set while there are writers
	creating map[string]bool // paths that this process is writing
	bad      map[string]badNode
}

// conn is a client of the library, with one connection, for one call at a time.
type conn struct {
	client  *client.Client
	remote  remote
	users   int       // guarded by the cluster's lock
	retired bool      // closed after its last use
	idle    time.Time // since when

	mu      sync.Mutex
	last    *nameConn
	lastErr error // last error of dialling
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
			own.lastErr = fmt.Errorf("NameNode: %w", err)
			return nil, own.lastErr
		}
		own.last, own.lastErr = &nameConn{Conn: raw, addr: addr, timeout: c.fs.options.Timeout}, nil
		return own.last, nil
	}
}

// acquire returns the least used client, or a new one.
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
	if i := slices.Index(options.Addresses, c.active); i > 0 { // try the last active one first
		options.Addresses = slices.Concat(options.Addresses[i:], options.Addresses[:i])
	}
	c.mu.Unlock()
	one, err := c.connect(options)
	c.mu.Lock()
	c.making--
	c.made.Broadcast()
	if err != nil {
		return nil, err
	}
	c.answered, c.active = true, one.last.addr
	c.clients = append(c.clients, one)
	if c.reaper == nil {
		c.reaper = time.AfterFunc(idleTime/4, c.reap)
	}
	return one, nil
}

// connect makes a client with one user.
func (c *cluster) connect(options client.ClientOptions) (*conn, error) {
	one := &conn{users: 1}
	options.NamenodeDialFunc = c.dialer(one)
	made, err := client.NewClient(options)
	if err != nil {
		_, err = classify(err, one.lastError())
		return nil, err
	}
	one.client, one.remote = made, prepareClient(made, c.name)
	// Request these defaults now: copies by withDialer share the response only if it is already there.
	if _, err = made.ServerDefaults(); err == nil {
		return one, nil
	}
	why := one.lastError()
	one.close()
	if answer, ok := remoteError(err); ok {
		_, err = classifyResponse(answer)
	} else if why != nil {
		err = why
	}
	return nil, err
}

// release ends a use. A broken client is not used again.
func (c *cluster) release(one *conn, isBroken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.users--
	one.idle = time.Now()
	if isBroken {
		one.retired = true
		c.clients = slices.DeleteFunc(c.clients, func(o *conn) bool { return o == one })
	}
	if one.retired && one.users == 0 {
		one.close()
	}
}

// reap closes clients that were unused for idleTime.
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

// lastError returns the last error of the connection, or of dialling.
func (c *conn) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastErr != nil || c.last == nil {
		return c.lastErr
	}
	return c.last.lastError()
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil {
		c.last.Close()
	}
}

// earlierTries describes the tries before a call.
type earlierTries struct {
	unclear bool // an earlier try may have had its effect although it failed
}

// try retries a call until there is an answer or the time is over. The time is shorter
// before the first response of a NameNode: the address may be wrong.
func (c *cluster) try(op func(one *conn, before earlierTries) error) error {
	var before earlierTries
	began := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		what, err := c.tryOnce(op, before)
		if what == final || what == unreachable {
			return err
		}
		if what == noResponse {
			before.unclear = true
		}
		if time.Since(began)+pause > c.retryTime() {
			return err
		}
		// The random pause spreads the retries of many clients of one NameNode.
		if e := c.fs.wait(pause/2 + rand.N(pause)); e != nil {
			return errors.Join(err, e)
		}
	}
}

func (c *cluster) tryOnce(op func(*conn, earlierTries) error, before earlierTries) (callResult, error) {
	one, err := c.acquire()
	if err != nil {
		var answer *nameNodeError
		if errors.As(err, &answer) && (answer.is == nil || answer.is == errSafeMode) {
			return retryLater, err
		}
		what, err := classify(err, err)
		if what == noResponse {
			what = retryLater // no request was sent yet
		}
		return what, err
	}
	err = op(one, before)
	if err == nil {
		c.release(one, false)
		return final, nil
	}
	if _, ok := errors.AsType[*permanentError](err); ok {
		c.release(one, false)
		return final, err
	}
	what, err := classify(err, one.lastError())
	c.release(one, what != final)
	return what, err
}

// permanentError is an error of this package, not of a NameNode, that needs no retry.
type permanentError struct{ error }

func (s *permanentError) Unwrap() error { return s.error }

func (c *cluster) retryTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answered {
		return c.fs.options.RetryFor
	}
	return c.fs.options.FirstRetryFor
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

// writing counts writers. While there are any, their lease is renewed.
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
	// Writers notice a failure themselves; the lease lasts for over a minute.
	_ = c.try(func(one *conn, _ earlierTries) error {
		return one.remote.Execute("renewLease", message("RenewLeaseRequest", "clientName", c.name), message("RenewLeaseResponse"))
	})
	c.writing(0)
}
