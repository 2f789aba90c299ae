package tpch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/tpch/peers"
)

// scan reads two columns of lineitem, as a Parquet file that DuckDB has written.
func (b *bench) scan() error {
	peer, err := peers.DuckDB(b.Ctx)
	if err != nil {
		return err
	}
	file := b.Path("items-" + b.Scale + ".parquet")
	if _, err := os.Stat(file); err != nil {
		write := fmt.Sprintf("copy lineitem to '%s' (format parquet)", file)
		if _, err := peer.Query(b.Ctx, b.tables(), write, b.cores); err != nil {
			return errors.Join(err, os.RemoveAll(file))
		}
	}
	if err := testbed.WarmCache(file); err != nil {
		return err
	}
	testbed.Table("scan", "quern", "duckdb", "duckdb without start", "quern / duckdb", "quern / duckdb without start")
	for _, before := range []string{"", "1995-01-01"} {
		if err := b.scanned(peer, file, before); err != nil {
			return err
		}
	}
	return nil
}

// scanned alternates a scan in Quern and in DuckDB, and compares their answers. before is the filter's date; empty:
// there is none.
func (b *bench) scanned(peer *peers.Peer, file, before string) error {
	name, sql := "two columns", fmt.Sprintf("select 'discounts', (sum(l_extendedprice * l_discount) * 10000)::bigint from '%s'", file)
	if before != "" {
		name, sql = "with a filter on a third", sql+fmt.Sprintf(" where l_shipdate < date '%s'", before)
	}
	var want, got string
	var alone []time.Duration
	all, err := testbed.Alternate(1, b.Runs, func() (time.Duration, error) {
		unix.Sync()
		a, err := peer.Query(b.Ctx, "", sql, b.cores)
		if err != nil {
			return 0, err
		}
		want, alone = strings.ReplaceAll(a.Lines, "|", "\t"), append(alone, a.Query)
		return a.Whole, nil
	}, func() (took time.Duration, err error) {
		got, took, err = b.revenue(file, before)
		if err == nil && got != want {
			err = fmt.Errorf("%s: the answer is %q, that of DuckDB %q", name, got, want)
		}
		return took, err
	})
	if err != nil {
		return err
	}
	whole, quern, query := testbed.Median(all[0]), testbed.Median(all[1]), testbed.Median(alone[1:])
	testbed.Row(name, testbed.Millis(quern), testbed.Millis(whole), testbed.Millis(query), testbed.Ratio(quern, whole), testbed.Ratio(quern, query))
	return nil
}

// revenue runs our program from a clean start and times its whole process.
func (b *bench) revenue(file, before string) (answer string, took time.Duration, err error) {
	out := b.Path("out")
	took, err = testbed.TimedAgain(b.Ctx, exec.Command(b.Program("revenue"), "-text", "-before", before, "-input", file, "-output", out,
		"-D", fmt.Sprintf("quern.embedded.slots=%d", b.cores)), out)
	if err != nil {
		return "", 0, err
	}
	answer, err = peers.Parts(out)
	return answer, took, err
}
