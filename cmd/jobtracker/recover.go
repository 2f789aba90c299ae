package main

import (
	"flag"
	"fmt"
	"net"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/jobtracker/replica"
)

const (
	recoverCommand  = "recover"
	recoverSynopsis = "jobtracker " + recoverCommand + " -data DIR -id ID -raft HOST:PORT"
	recoverHelp     = `Makes a stopped job tracker the only voter of a cluster that has lost most of its job trackers
for good. Choose the job tracker with the newest log: docs/running-a-cluster.md says how to find
it. Give its -data, its -id and its advertised -raft address, then start it. Start other job
trackers with empty directories, never with their old ones.
`
)

// recoverLog makes a stopped job tracker the only voter.
func recoverLog(args []string, out daemon.Output) error {
	set := flag.NewFlagSet("jobtracker "+recoverCommand, flag.ContinueOnError)
	data := set.String("data", "", "-data `directory` of the job tracker")
	id := set.String("id", "", "-id `name` of the job tracker")
	addr := set.String("raft", "", "advertised -raft `address` of the job tracker, host:port")
	if err := daemon.ParseCommand(set, args, out, recoverSynopsis, recoverHelp); err != nil {
		return err
	}
	if *data == "" || *id == "" || *addr == "" {
		return daemon.Usagef("%s: -data, -id and -raft are needed", recoverCommand)
	}
	if _, _, err := net.SplitHostPort(*addr); err != nil {
		return daemon.Usagef("%s: -raft: %v", recoverCommand, err)
	}
	if err := replica.Recover(daemon.LogDir(*data), *id, *addr); err != nil {
		return fmt.Errorf("%s: %w", recoverCommand, err)
	}
	fmt.Fprintf(out.Stderr, "%s is now the only voter: start it\n", *id)
	return nil
}
