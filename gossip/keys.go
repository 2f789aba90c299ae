package gossip

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

// Keys returns the current keys, each of 32 bytes: the first one encrypts, all of them decrypt. It is
// called every two seconds. If it returns none at the start, nothing is ever encrypted.
type Keys func() ([][]byte, error)

// keyring is the keys in use, and their source.
type keyring struct {
	ring   *memberlist.Keyring // nil: no encryption
	read   Keys                // nil: they never change
	period time.Duration       // between two reads
}

func (g *Gossip) makeKeyring(conf *memberlist.Config, cfg Config) (err error) {
	g.keys = keyring{read: cfg.Keys, period: cmp.Or(cfg.rekey, 2*time.Second)}
	keys := [][]byte{cfg.Key}
	if cfg.Keys != nil {
		if keys, err = cfg.Keys(); err != nil {
			return err
		}
	}
	if len(keys) > 0 && len(keys[0]) > 0 {
		g.keys.ring, err = memberlist.NewKeyring(keys, keys[0])
	}
	conf.Keyring = g.keys.ring
	return err
}

// watchKeys uses changed keys until gossip ends. After an error the old keys stay in use.
func (g *Gossip) watchKeys() {
	if g.keys.ring == nil || g.keys.read == nil {
		return
	}
	tick := time.NewTicker(g.keys.period)
	defer tick.Stop()
	logged := ""
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		keys, err := g.keys.read()
		changed := false
		if err == nil {
			changed, err = setKeys(g.keys.ring, keys)
		}
		switch {
		case err != nil && err.Error() != logged:
			logged = err.Error()
			g.log.Error("gossip: new keys cannot be used, the old ones stay", "error", err)
		case err == nil:
			logged = ""
		}
		if changed {
			g.log.Info("gossip: new keys", "keys", len(keys))
		}
	}
}

// setKeys makes a keyring have these keys. The first one encrypts.
func setKeys(ring *memberlist.Keyring, keys [][]byte) (changed bool, err error) {
	old := ring.GetKeys()
	if len(keys) == 0 || slices.EqualFunc(old, keys, bytes.Equal) {
		return false, nil
	}
	for _, key := range keys {
		if err := memberlist.ValidateKey(key); err != nil {
			return false, err
		}
	}
	if err := ring.AddKey(keys[0]); err != nil {
		return false, err
	}
	if err := ring.UseKey(keys[0]); err != nil {
		return false, err
	}
	// RemoveKey moves the keys behind a removed one, although others may read them at this time. So
	// remove the last one each time, and add again what stays.
	for others := ring.GetKeys(); len(others) > 1; others = ring.GetKeys() {
		if err := ring.RemoveKey(others[len(others)-1]); err != nil {
			return true, err
		}
	}
	for _, key := range keys[1:] {
		if err := ring.AddKey(key); err != nil {
			return true, err
		}
	}
	return true, nil
}
