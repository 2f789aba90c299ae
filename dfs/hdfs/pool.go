package hdfs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/colinmarc/hdfs/v2"
	"google.golang.org/protobuf/proto"
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

	name     string // client name for writing files
	byName   bool   // DataNodes are dialled by host name
	security security

	serverEncrypts atomic.Bool // the NameNode says that DataNodes encrypt

	mu         sync.Mutex
	options    client.ClientOptions
	clients    []*pooledConn   // without the broken ones
	connecting int             // number being created
	connected  sync.Cond       // signalled when a creation ends
	responded  bool            // a NameNode has responded
	activeAddr string          // address of that NameNode
	reaper     *time.Timer     // set while clients is not empty
	writers    int             // number of open files being written
	renewal    *time.Timer     // set while there are writers
	creating   map[string]bool // paths that this process is writing
	badNodes   map[string]badNode
	dataKey    proto.Message // with which DataNodes encrypt; nil: not asked for
}

// pooledConn is a client of the library, with one connection, for one call at a time.
type pooledConn struct {
	client  *client.Client
	remote  remote
	users   int       // guarded by the cluster's lock
	retired bool      // closed after its last use
	idle    time.Time // since when users is 0

	mu       sync.Mutex
	nameConn *nameConn
	lastErr  error // last dial error
}

// dial dials NameNodes and DataNodes.
func (c *cluster) dial(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, min(dialTimeout, c.fs.options.Timeout))
	defer cancel()
	return c.connectFrom(ctx, "tcp", addr)
}

func (c *cluster) dialer(conn *pooledConn) dialFunc {
	return func(ctx context.Context, _, addr string) (net.Conn, error) {
		raw, err := c.dial(ctx, addr)
		var secured net.Conn
		if err == nil {
			if secured, err = c.secureName(raw, addr); err != nil {
				raw.Close()
				err = fmt.Errorf("%s: %w", addr, err)
			}
		}
		conn.mu.Lock()
		defer conn.mu.Unlock()
		if err != nil {
			var unknown *net.DNSError
			if errors.As(err, &unknown) && unknown.IsNotFound {
				err = fmt.Errorf("%s: %w (HADOOP_CONF_DIR)", addr, errNameservice)
			}
			conn.lastErr = fmt.Errorf("NameNode: %w", err)
			return nil, conn.lastErr
		}
		conn.nameConn, conn.lastErr = &nameConn{Conn: secured, addr: addr, timeout: c.fs.options.Timeout}, nil
		return conn.nameConn, nil
	}
}

// acquire returns the client with the fewest users, or a new one.
func (c *cluster) acquire() (*pooledConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var best *pooledConn
		for _, conn := range c.clients {
			if best == nil || conn.users < best.users {
				best = conn
			}
		}
		full := len(c.clients)+c.connecting >= maxClients
		if best != nil && (best.users == 0 || full) {
			best.users++
			return best, nil
		}
		if !full {
			break
		}
		c.connected.Wait()
	}
	c.connecting++
	options := c.options
	if i := slices.Index(options.Addresses, c.activeAddr); i > 0 { // try the last active one first
		options.Addresses = slices.Concat(options.Addresses[i:], options.Addresses[:i])
	}
	c.mu.Unlock()
	conn, err := c.connect(options)
	c.mu.Lock()
	c.connecting--
	c.connected.Broadcast()
	if err != nil {
		return nil, err
	}
	c.responded, c.activeAddr = true, conn.nameConn.addr
	c.clients = append(c.clients, conn)
	if c.reaper == nil {
		c.reaper = time.AfterFunc(idleTime/4, c.reap)
	}
	return conn, nil
}

// connect makes a client with one user.
func (c *cluster) connect(options client.ClientOptions) (*pooledConn, error) {
	conn := &pooledConn{users: 1}
	options.NamenodeDialFunc = c.dialer(conn)
	created, err := client.NewClient(options)
	if err != nil {
		_, err = classify(err, conn.lastError())
		return nil, err
	}
	conn.client, conn.remote = created, prepareClient(created, c.name)
	// Request these defaults now: copies by withDialer share the response only if it is already there.
	if _, err = created.ServerDefaults(); err == nil {
		c.serverEncrypts.Store(takeEncryption(created))
		return conn, nil
	}
	connErr := conn.lastError()
	conn.close()
	if answer, ok := remoteError(err); ok {
		_, err = classifyResponse(answer)
	} else if connErr != nil {
		err = connErr
	}
	return nil, err
}

// release ends one use of a client. A broken client is not used again.
func (c *cluster) release(conn *pooledConn, isBroken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.users--
	conn.idle = time.Now()
	if isBroken {
		conn.retired = true
		c.clients = slices.DeleteFunc(c.clients, func(o *pooledConn) bool { return o == conn })
	}
	if conn.retired && conn.users == 0 {
		conn.close()
	}
}

// reap closes clients that were unused for idleTime.
func (c *cluster) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients = slices.DeleteFunc(c.clients, func(conn *pooledConn) bool {
		old := conn.users == 0 && time.Since(conn.idle) >= idleTime
		if old {
			conn.close()
		}
		return old
	})
	c.reaper = nil
	if len(c.clients) > 0 {
		c.reaper = time.AfterFunc(idleTime/4, c.reap)
	}
}

// lastError returns the last error of the connection, or the last dial error.
func (c *pooledConn) lastError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastErr != nil || c.nameConn == nil {
		return c.lastErr
	}
	return c.nameConn.lastError()
}

func (c *pooledConn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.nameConn != nil {
		c.nameConn.Close()
	}
}

// retryState describes the earlier calls of a request that is retried.
type retryState struct {
	mayHaveApplied bool // an earlier call may have had its effect although it failed
}

// retry repeats a call until there is a response or the time is over. The time is shorter
// before the first response of a NameNode, because the address may be wrong.
func (c *cluster) retry(op func(conn *pooledConn, earlier retryState) error) error {
	var earlier retryState
	began := time.Now()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		result, err := c.callOnce(op, earlier)
		if result == final || result == unreachable {
			return err
		}
		if result == noResponse {
			earlier.mayHaveApplied = true
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

func (c *cluster) callOnce(op func(*pooledConn, retryState) error, earlier retryState) (callResult, error) {
	conn, err := c.acquire()
	if err != nil {
		var answer *nameNodeError
		if errors.As(err, &answer) {
			if answer.sentinel == nil || answer.sentinel == errSafeMode {
				return retryLater, err
			}
			return final, err // with the NameNode's reason
		}
		result, err := classify(err, err)
		if result == noResponse {
			result = retryLater // no request was sent yet
		}
		return result, err
	}
	err = op(conn, earlier)
	if err == nil {
		c.release(conn, false)
		return final, nil
	}
	if _, ok := errors.AsType[*permanentError](err); ok {
		c.release(conn, false)
		return final, err
	}
	result, err := classify(err, conn.lastError())
	c.release(conn, result != final)
	return result, err
}

// permanentError is an error of this package, not of a NameNode. Retrying does not help.
type permanentError struct{ error }

func (s *permanentError) Unwrap() error { return s.error }

func (c *cluster) retryTime() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.responded {
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

// addWriters changes the number of writers. While there are any, their lease is renewed.
func (c *cluster) addWriters(change int) {
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
	_ = c.retry(func(conn *pooledConn, _ retryState) error {
		return conn.remote.Execute("renewLease", message("RenewLeaseRequest", "clientName", c.name), message("RenewLeaseResponse"))
	})
	c.addWriters(0)
}
