package locality

import "github.com/quernmr/quern/wire"

// Level returns the distance of data on some hosts, in some racks, to a host in a rack. Hosts
// are as [HostKey] returns them. Data without location has no level.
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
