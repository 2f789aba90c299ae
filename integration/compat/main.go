// Compat compares Quern with its real peers:
//
//	go run ./integration/compat [-rewrite] [-only globs,names] [-cases text]
//
// Most answers are recorded in testdata, so that gating tests need no peer. Compat runs the peers
// and compares their answers with these files; -rewrite writes changed answers. It also compares
// Quern with the peers on data that is too large to record. It prints a table of results and
// exits with 1 if anything differs or fails.
//
// Peers come from Maven and Python's package index into the cache (package cache).
// Unavailable peers are skipped and named. Peers run one at a time, because they need
// memory. Compat also writes the results to docs/compat.md, where checks that it has not run keep theirs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/tpch/peers"
)

func main() {
	rewrite := flag.Bool("rewrite", false, "record the peers' answers")
	only := flag.String("only", "", "comma-separated `names` of the checks to run; default: all")
	cases := flag.String("cases", "", "run only the cases of Streaming with this `text` in their names")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *only, *cases, *rewrite)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only, cases string, rewrite bool) error {
	if _, err := os.Stat("integration/compat"); err != nil {
		return fmt.Errorf("run it at the top of the repository: %w", err)
	}
	dir, err := os.MkdirTemp("", "quern-compat-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := checks(dir, cases)
	selected, err := choose(all, only)
	if err != nil {
		return err
	}
	var results []result
	for _, c := range selected {
		fmt.Fprintf(os.Stderr, "%s: %s\n", c.name, c.peer)
		results = append(results, c.ask(ctx, rewrite))
		if ctx.Err() == nil && cases == "" {
			if err := write(all, results); err != nil {
				return err
			}
		}
	}
	fmt.Print(show(results, time.Now()))
	if err := ctx.Err(); err != nil {
		return err
	}
	if bad := count(results, differs) + count(results, failed); bad > 0 {
		return fmt.Errorf("%d of %d checks differ or failed; if a difference is the peer's, record it with -rewrite", bad, len(results))
	}
	return nil
}

const page = "docs/compat.md"

// write writes the page. It is written after each check, so that no result is lost if a later check ends the run.
func write(all []check, results []result) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	return os.WriteFile(page, []byte(updated(string(old), all, results, time.Now())), 0o666)
}

// choose returns the checks of a comma-separated list of names; all if it is empty.
func choose(all []check, only string) (selected []check, err error) {
	if only == "" {
		return all, nil
	}
	for name := range strings.SplitSeq(only, ",") {
		found := false
		for _, c := range all {
			if c.name == name {
				selected, found = append(selected, c), true
			}
		}
		if !found {
			return nil, fmt.Errorf("-only %s: there is no check %q", only, name)
		}
	}
	return selected, nil
}

// unavailable reports that a peer is not available on this machine.
func unavailable(err error) bool {
	return errors.Is(err, minicluster.ErrUnavailable) || errors.Is(err, peers.ErrUnavailable) || errors.Is(err, errNoPromtool) || errors.Is(err, errNoBrowser)
}
