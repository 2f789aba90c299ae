package seek

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/identity"
)

// TestOrder: the last leader comes first, a hint next, and a lost leader last.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := New([]string{"a", "b", "c"})
		known.SetLeader("b")
		s := known.Search(time.Minute)
		s.Lost("a", time.Minute)
		next := func() string {
			addr, _, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return addr
		}
		var got []string
		follower := errors.New("it follows")
		for _, hint := range []string{"d", "", "", ""} {
			addr := next()
			got = append(got, addr)
			s.Answered(addr, follower, hint)
		}
		if !slices.Equal(got, []string{"b", "d", "c", "a"}) {
			t.Errorf("the first round is %q", got)
		}
		got = []string{next(), next(), next(), next()}
		if got[3] != "a" || !slices.Contains(got, "d") {
			t.Errorf("the second round is %q", got)
		}
	})
}

// TestFailure: a failed search lists the addresses, and says whether they answered.
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		answers bool
		want    error
	}{{false, ErrUnreachable}, {true, ErrNoLeader}} {
		synctest.Test(t, func(t *testing.T) {
			s := New([]string{"b", "a"}).Search(10 * time.Second)
			why, slow := errors.New("the reason"), 0
			for {
				addr, limit, err := s.Next(t.Context())
				if err != nil {
					if !errors.Is(err, c.want) || !errors.Is(err, why) || !strings.Contains(err.Error(), "tried a, b for 10s") {
						t.Errorf("it ended with %v", err)
					}
					break
				}
				if limit < minTimeout || limit > maxTimeout {
					t.Errorf("a time limit of %v", limit)
				}
				if c.answers {
					s.Answered(addr, why, "")
				} else {
					s.Failed(addr, why)
				}
				if _, now := s.Slow(); now {
					slow++
				}
			}
			if slow != 1 || !s.SlowReported() {
				t.Errorf("reported %d times that it takes long", slow)
			}
		})
	}
	if _, _, err := New(nil).Search(0).Next(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("without addresses: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := New([]string{"a"}).Search(0).Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
}

// TestHopeless: a search ends when every address of a round belongs to another authority or protects
// its connections differently, but not while another address may serve.
func TestHopeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := fmt.Errorf("a: %w", identity.ErrOtherAuthority)
		s := New([]string{"a", "b"}).Search(time.Hour)
		for _, err := range []error{other, ErrProtection} {
			addr, _, _ := s.Next(t.Context())
			s.Failed(addr, err)
		}
		began := time.Now()
		if _, _, err := s.Next(t.Context()); !errors.Is(err, ErrUnreachable) || !errors.Is(err, ErrProtection) || time.Since(began) > 0 {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		s = New([]string{"a", "b"}).Search(time.Hour)
		for _, err := range []error{other, errors.New("it is down")} {
			addr, _, _ := s.Next(t.Context())
			s.Failed(addr, err)
		}
		if _, _, err := s.Next(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
