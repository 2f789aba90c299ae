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

// setAddresses looks names up, as memberlist takes numbers only and would take a
// name for every address there is.
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
		return "", 0, fmt.Errorf("address %s: port %q is no number up to 65535", addr, service)
	}
	return host, int(n), nil
}

// lookUp gives the address of a host, IPv4 where it has one.
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

// Waits between attempts to join: doubled each time, with jitter.
const (
	joinLeast = 100 * time.Millisecond
	joinMost  = 2 * time.Second
	joinCheck = 5 * time.Second // whether an address that was joined still is a member's
)

// join keeps an address joined: it is tried for as long as no member has it. Tried
// is called after each attempt.
func (g *Gossip) join(addr string, tried func()) {
	wait, said := joinLeast, false
	for {
		at, joined, err := g.joinOnce(addr)
		tried()
		switch {
		case joined:
			wait, said = joinLeast, false
		case g.ctx.Err() != nil:
			return
		case err != nil && !said && wait >= joinMost:
			said = true
			g.log.Warn("gossip: cannot join", "address", addr, "at", at, "error", err)
		}
		pause := wait/2 + rand.N(wait)
		if joined {
			pause = joinCheck
		}
		if !g.pause(pause) {
			return
		}
		wait = min(2*wait, joinMost)
	}
}

// joinOnce joins an address unless it is a member's, or this process's own.
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

// rejoinEvery is how often job trackers that were lost are looked for: those that
// found each other by a third meet again only by this when it is gone.
const rejoinEvery = 5 * time.Second

// mostGone bounds how many lost addresses are remembered.
const mostGone = 64

func (g *Gossip) rejoin() {
	for g.pause(rejoinEvery/2 + rand.N(rejoinEvery)) {
		g.mu.Lock()
		gone := make([]string, 0, len(g.gone))
		for addr := range g.gone {
			if len(gone) == mostGone {
				delete(g.gone, addr)
				continue
			}
			gone = append(gone, addr)
		}
		g.mu.Unlock()
		for _, addr := range gone {
			if g.ctx.Err() == nil {
				g.joinOnce(addr) // that it is still gone is no news
			}
		}
	}
}

// pause waits; false: the end has come.
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
