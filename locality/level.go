package locality

import "github.com/quernmr/quern/wire"

// Level returns the distance from a host in a rack to data on some hosts in some racks. Hosts are
// results of [HostKey]. It returns 0 for data without hosts.
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
