package tpch

import (
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/tpch/peers"
)

// engine answers queries.
type engine struct {
	name   string
	cores  string // how its number of cores is set
	answer func(query int) (*peers.Answer, error)
}

func (b *bench) peer(p *peers.Peer, cores string) engine {
	return engine{p.Name, cores, func(query int) (*peers.Answer, error) {
		unix.Sync() // exclude the dirty pages of earlier runs
		return p.Ask(b.Ctx, b.tables(), query, b.cores)
	}}
}

func (b *bench) quern() engine {
	cores := fmt.Sprintf("%d slots, of maps and of reduces, and %d reduces", b.cores, b.cores)
	return engine{"quern", cores, b.once}
}

// once runs our program from a clean start and times its whole process.
func (b *bench) once(query int) (*peers.Answer, error) {
	out := b.Path("out")
	took, err := testbed.TimedAgain(b.Ctx, exec.Command(b.Program("tpch"), "-query", fmt.Sprint(query), "-tables", b.tables(), "-output", out,
		"-D", fmt.Sprintf("quern.embedded.slots=%d", b.cores), "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.cores)), out)
	if err != nil {
		return nil, err
	}
	lines, err := peers.Parts(out)
	return &peers.Answer{Lines: lines, Whole: took}, err
}
