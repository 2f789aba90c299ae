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

	"github.com/quernmr/quern/identity"
)

// Health is a daemon's answer to GET /healthz, as JSON. That there is one says that
// its loop works; whoever ends a daemon for being without a leader would end what
// runs there.
type Health struct {
	ID  string `json:"id"`
	Led bool   `json:"led"` // it knows of a leader; of a task tracker: it is registered with one
}

const (
	healthCommand  = "healthz"
	healthSynopsis = healthCommand + " [-tls-dir DIR] HOST:PORT"
)

// healthWait bounds a look at a daemon's health, maxHealth its answer.
const (
	healthWait = 5 * time.Second
	maxHealth  = 64 << 10
)

// askHealth asks a daemon of the same kind for its health, as that daemon itself.
func askHealth(ctx context.Context, name string, args []string, out Output) error {
	set := flag.NewFlagSet(name+" "+healthCommand, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	dir := set.String("tls-dir", "", "the daemon's own -tls-dir")
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(out.Stdout, "usage: %s %s\n\nasks a running %s whether it works, for health checks: exit code 0 if it does\n", name, healthSynopsis, name)
		return err
	case err != nil:
		return Wrong("%v", err)
	case set.NArg() != 1:
		return Wrong("%s needs one address, that of -listen", healthCommand)
	}
	addr := set.Arg(0)
	if err := CheckAddresses(healthCommand, []string{addr}); err != nil {
		return err
	}
	transport, scheme := &http.Transport{}, "http"
	if *dir != "" {
		role := identity.Role(name)
		who, err := identity.Load(*dir, role, nil)
		if err != nil {
			return Wrong("-tls-dir: %v", err)
		}
		transport.TLSClientConfig, scheme = who.Dialer(role), "https"
	}
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	health, err := fetchHealth(ctx, &http.Client{Transport: transport}, scheme+"://"+addr+"/healthz")
	if err != nil {
		return fmt.Errorf("%s at %s does not answer as it should: %w", name, addr, err)
	}
	led := "without a leader"
	if health.Led {
		led = "with a leader"
	}
	fmt.Fprintf(out.Stdout, "ok %s %s, %s\n", name, health.ID, led)
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
		return nil, fmt.Errorf("its answer is not a daemon's: %q", text[:min(len(text), 100)])
	}
	return health, nil
}
