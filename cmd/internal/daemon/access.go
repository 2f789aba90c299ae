package daemon

import (
	"flag"
	"log/slog"

	"github.com/quernmr/quern/listen"
)

// Access says which connections and requests a daemon's -listen accepts, before it knows the peer.
type Access struct {
	names     listen.Names // of -additional-dnsname
	perClient int          // -max-conns-per-client
}

// Flags defines the flags of a.
func (a *Access) Flags(set *flag.FlagSet) {
	set.Func(listen.NameFlag[1:], "DNS `names` by which clients reach -listen, in addition to its addresses and -advertise, separated by commas: HTTP requests for other host names are refused", func(text string) error {
		for _, name := range SplitList(text) {
			if err := listen.CheckName(name); err != nil {
				return err
			}
			a.names = append(a.names, name)
		}
		return nil
	})
	set.IntVar(&a.perClient, "max-conns-per-client", listen.DefaultPerAddress, "most open `connections` to -listen from one IP address; 0: no limit")
}

// Check refuses bad values of the flags.
func (a *Access) Check() error {
	if a.perClient < 0 {
		return Usagef("-max-conns-per-client must not be negative, got %d", a.perClient)
	}
	return nil
}

// Names returns the names of a daemon with these addresses.
func (a *Access) Names(addrs ...string) listen.Names { return append(listen.Names(addrs), a.names...) }

// Limits returns the limits of connections to -listen.
func (a *Access) Limits(log *slog.Logger) listen.Limits {
	l := listen.Limits{PerAddress: a.perClient, Logger: log}
	if a.perClient == 0 {
		l.PerAddress = -1
	}
	return l
}
