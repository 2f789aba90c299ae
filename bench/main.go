// Command bench measures Quern.
//
//	go run ./bench SECTION [flags]
//
// Without a section it lists the sections. SECTION -h lists a section's flags and the names for
// -only. Inputs come from fixed seeds. Compared programs alternate, A B A B …, and their outputs
// are compared before a figure is printed. Figures are medians unless the table says otherwise.
// Only wrong results and errors fail, never slow times.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/quernmr/quern/bench/cluster"
	"github.com/quernmr/quern/bench/files"
	"github.com/quernmr/quern/bench/hadoop"
	"github.com/quernmr/quern/bench/hdfs"
	"github.com/quernmr/quern/bench/machine"
	"github.com/quernmr/quern/bench/mix"
	"github.com/quernmr/quern/bench/mrjob"
	"github.com/quernmr/quern/bench/pages"
	"github.com/quernmr/quern/bench/pair"
	"github.com/quernmr/quern/bench/peers"
	"github.com/quernmr/quern/bench/schedulers"
	"github.com/quernmr/quern/bench/steps"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/bench/tpch"
)

func sections() []testbed.Section {
	return []testbed.Section{
		machine.Section(), files.Section(), cluster.Section(), hdfs.Section(), hadoop.Section(), mrjob.Section(), schedulers.Section(), mix.Section(), tpch.Section(), pair.Section(), peers.Section(), pages.Section(), steps.Section(),
	}
}

func main() {
	if ok, err := machine.RunProgram(os.Args[1:]); ok {
		exit(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, os.Args[1:]))
}

func run(ctx context.Context, args []string) error {
	printed := "name a section: go run ./bench SECTION [flags]\n"
	for _, s := range sections() {
		if len(args) > 0 && args[0] == s.Name {
			if err := s.Run(ctx, args[1:]); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			return nil
		}
		printed += fmt.Sprintf("  %-12s%s\n", s.Name, s.About)
	}
	return errors.New(printed)
}

func exit(err error) {
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
