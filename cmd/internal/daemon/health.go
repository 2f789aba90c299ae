package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/quernmr/quern/cmd/internal/userstate"
	"github.com/quernmr/quern/identity"
)

// Health is a daemon's answer to GET /healthz, as JSON. Any answer means that the daemon works. A
// daemon without a leader is healthy, because a restart would only end its attempts.
type Health struct {
	ID        string `json:"id"`
	HasLeader bool   `json:"led"` // a job tracker knows a leader; a task tracker is registered with it
}

const (
	healthCommand  = "healthz"
	healthSynopsis = healthCommand + " [-tls-dir DIR] [-insecure] HOST:PORT"
)

// healthWait limits the time of a health check, maxHealth the bytes of the answer.
const (
	healthWait = 5 * time.Second
	maxHealth  = 64 << 10
)

// checkHealth requests the health of a daemon of the same kind, with the daemon's own certificate or
// the automatic one of the user.
func checkHealth(ctx context.Context, name string, args []string, out Output) error {
	set := flag.NewFlagSet(name+" "+healthCommand, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	var security Security
	security.connectionFlags(set)
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out.Stdout, "usage: %s %s\n\nChecks whether a running %s works: exit code 0 if it does. Use the same\n-tls-dir or -insecure as the daemon's, or neither.\n", name, healthSynopsis, name)
		return err
	case err != nil:
		return Usagef("%v", err)
	case security.TLSDir != "" && security.Insecure:
		return errBoth
	case set.NArg() != 1:
		return Usagef("%s needs one address: the daemon's -listen", healthCommand)
	}
	addr := set.Arg(0)
	if err := CheckAddresses(healthCommand, []string{addr}); err != nil {
		return err
	}
	transport, scheme := &http.Transport{}, "http"
	role := identity.Role(name)
	var self *identity.Identity
	var err error
	switch {
	case security.TLSDir != "":
		if self, err = identity.Load(security.TLSDir, role, nil); err != nil {
			return Usagef("-tls-dir: %v", err)
		}
	case security.Automatic():
		if self, _, err = loadAutomatic(identity.Peer{Role: identity.Client, Name: userstate.User()}, nil); err != nil {
			return err
		}
	}
	if self != nil {
		transport.TLSClientConfig, scheme = self.Dialer(role), "https"
	}
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	health, err := fetchHealth(ctx, &http.Client{Transport: transport}, scheme+"://"+addr+"/healthz")
	if err != nil {
		return fmt.Errorf("health of %s at %s: %w", name, addr, err)
	}
	led := map[bool]string{true: "with a leader", false: "without a leader"}
	if name == string(identity.TaskTracker) {
		led = map[bool]string{true: "registered with the leader", false: "not registered with a leader"}
	}
	fmt.Fprintf(out.Stdout, "ok %s %s, %s\n", name, health.ID, led[health.HasLeader])
	return nil
}

func fetchHealth(ctx context.Context, client *http.Client, url string) (*Health, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxHealth))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(text)))
	}
	health := new(Health)
	if err := json.Unmarshal(text, health); err != nil || health.ID == "" {
		return nil, fmt.Errorf("the answer is not a daemon's: %q", text[:min(len(text), 100)])
	}
	return health, nil
}
