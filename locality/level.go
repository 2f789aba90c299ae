package locality

import "github.com/quernmr/quern/wire"

// Level is how near data that is kept on some machines, which stand in some racks,
// is to a machine in a rack. Hosts are as [HostKey] gives them. Data that is
// nowhere in particular has no level.
func Level(hosts, racks []string, host, rack string) wire.Level {
	if len(hosts) == 0 {
		return 0
	}
	level := wire.Remote
	for _, h := range hosts {
		if h == host {
			return wire.NodeLocal
		}
	}
	for _, r := range racks {
		if r != "" && r == rack {
			level = wire.RackLocal
		}
	}
	return level
}
