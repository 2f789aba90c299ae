package gossip

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/hashicorp/memberlist"
)

// setAddresses sets addresses, and resolves names: memberlist needs numeric addresses, and would
// listen on all addresses if it got a name.
func setAddresses(ctx context.Context, conf *memberlist.Config, bind, advertise string) error {
	host, port, err := splitHostPort(bind)
	if err != nil {
		return err
	}
	if host == "" {
		host = "0.0.0.0"
	}
	ip, err := lookUp(ctx, host)
	if err != nil {
		return err
	}
	conf.BindAddr, conf.BindPort = ip, port
	conf.AdvertisePort = port
	if advertise == "" {
		return nil
	}
	host = advertise
	if _, _, err := net.SplitHostPort(advertise); err == nil {
		if host, conf.AdvertisePort, err = splitHostPort(advertise); err != nil {
			return fmt.Errorf("advertise: %w", err)
		}
	}
	if conf.AdvertiseAddr, err = lookUp(ctx, host); err != nil {
		return fmt.Errorf("advertise: %w", err)
	}
	return nil
}

func splitHostPort(addr string) (host string, port int, err error) {
	host, service, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("address %s: port %q is not a number up to 65535", addr, service)
	}
	return host, int(n), nil
}

// lookUp resolves a host, preferably to an IPv4 address.
func lookUp(ctx context.Context, host string) (string, error) {
	ips, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil {
		return "", err
	}
	for _, ip := range ips {
		if ip.To4() != nil {
			return ip.String(), nil
		}
	}
	return ips[0].String(), nil
}

// Pauses between attempts to join. They double each time, with jitter.
const (
	minJoinPause = 100 * time.Millisecond
	maxJoinPause = 2 * time.Second
	joinedPause  = 5 * time.Second // between checks that a member still has the address
)

// join repeats joinOnce for an address, until gossip ends. It calls tried after each attempt.
func (g *Gossip) join(addr string, tried func()) {
	wait, logged := minJoinPause, false
	for {
		at, joined, err := g.joinOnce(addr)
		tried()
		switch {
		case joined:
			wait, logged = minJoinPause, false
		case g.ctx.Err() != nil:
			return
		case err != nil && !logged && wait >= maxJoinPause:
			logged = true
			g.log.Warn("gossip: cannot join", "address", addr, "at", at, "error", err)
		}
		pause := wait/2 + rand.N(wait)
		if joined {
			pause = joinedPause
		}
		if !g.pause(pause) {
			return
		}
		wait = min(2*wait, maxJoinPause)
	}
}

// joinOnce joins the process at an address, unless a member or this process has that address.
func (g *Gossip) joinOnce(addr string) (at string, joined bool, err error) {
	host, port, err := splitHostPort(addr)
	if err != nil {
		return addr, false, err
	}
	ctx, cancel := context.WithTimeout(g.ctx, 3*time.Second)
	defer cancel()
	ip, err := lookUp(ctx, host)
	if err != nil {
		return addr, false, err
	}
	at = net.JoinHostPort(ip, strconv.Itoa(port))
	if at == g.addr || g.isMember(at) {
		return at, true, nil
	}
	_, err = g.list.Join([]string{at})
	return at, err == nil, err
}

func (g *Gossip) isMember(addr string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.nodes {
		if n.addr == addr {
			return true
		}
	}
	return false
}

// rejoinEvery is the average time between attempts to dial lost job trackers. Two job trackers that
// met through a third one do not have each other's address in Config.Join. If the third has died,
// only these attempts connect them again.
const rejoinEvery = 5 * time.Second

// maxLostAddrs is the maximum number of lost addresses that are remembered.
const maxLostAddrs = 64

func (g *Gossip) rejoin() {
	for g.pause(rejoinEvery/2 + rand.N(rejoinEvery)) {
		g.mu.Lock()
		addrs := make([]string, 0, len(g.lostAddrs))
		for addr := range g.lostAddrs {
			if len(addrs) == maxLostAddrs {
				delete(g.lostAddrs, addr)
				continue
			}
			addrs = append(addrs, addr)
		}
		g.mu.Unlock()
		for _, addr := range addrs {
			if g.ctx.Err() == nil {
				g.joinOnce(addr) // errors are expected
			}
		}
	}
}

// pause waits. It returns false if gossip ends.
func (g *Gossip) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.ctx.Done():
		return false
	}
}
