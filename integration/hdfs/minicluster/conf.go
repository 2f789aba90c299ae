package minicluster

import (
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// writeConf writes the configuration files of clients and daemons.
func (c *Cluster) writeConf() error {
	racks, hosts := new(strings.Builder), new(strings.Builder)
	self, err := os.Hostname()
	if err != nil {
		return err
	}
	if c.cfg.Hosts == nil {
		fmt.Fprintf(hosts, "127.0.0.1 localhost %s\n", self)
	} else { // Hadoop takes the names of servers from their addresses
		fmt.Fprintf(hosts, "127.0.0.1 localhost\n127.0.2.1 %s\n", self)
	}
	for _, d := range c.DataNodes {
		fmt.Fprintf(racks, "%s %s\n", d.IP, d.Rack)
		fmt.Fprintf(hosts, "%s %s\n", d.IP, d.ID)
	}
	table := filepath.Join(c.cfg.Dir, "racks")
	core := map[string]string{
		"fs.defaultFS":                            c.URL(),
		"net.topology.node.switch.mapping.impl":   "org.apache.hadoop.net.TableMapping",
		"net.topology.table.file.name":            table,
		"hadoop.rpc.socket.factory.class.default": "BindingSocketFactory",
		"ipc.client.connect.max.retries":          "10",
		"ipc.client.connect.retry.interval":       "200",
	}
	for name, value := range c.cfg.Properties {
		if strings.HasPrefix(name, "hadoop.") { // a client reads these before hdfs-site.xml
			core[name] = value
		}
	}
	return errors.Join(
		writeXML(filepath.Join(c.Conf(), "core-site.xml"), core),
		writeXML(filepath.Join(c.Conf(), "hdfs-site.xml"), c.site()),
		os.WriteFile(filepath.Join(c.Conf(), "log4j.properties"), []byte(logging), 0o666),
		os.WriteFile(table, []byte(racks.String()), 0o666),
		os.WriteFile(c.hosts(), []byte(hosts.String()), 0o666))
}

const logging = `log4j.rootLogger=WARN,stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
`

// site returns the properties of hdfs-site.xml, the same for clients and all daemons. A daemon's
// own properties are on its command line.
func (c *Cluster) site() map[string]string {
	site := map[string]string{
		"dfs.replication":                                           fmt.Sprint(c.cfg.Replication),
		"dfs.blocksize":                                             fmt.Sprint(c.cfg.BlockSize),
		"dfs.namenode.fs-limits.min-block-size":                     "4096",
		"dfs.namenode.safemode.extension":                           "0",
		"dfs.namenode.safemode.min.datanodes":                       fmt.Sprint(len(c.cfg.Racks)),
		"dfs.heartbeat.interval":                                    "1",
		"dfs.namenode.heartbeat.recheck-interval":                   "3000",
		"dfs.namenode.redundancy.interval.seconds":                  "1s",
		"dfs.namenode.handler.count":                                "4",
		"dfs.namenode.service.handler.count":                        "2",
		"dfs.datanode.handler.count":                                "2",
		"dfs.permissions.enabled":                                   "true",
		"dfs.webhdfs.enabled":                                       "true",
		"dfs.namenode.datanode.registration.ip-hostname-check":      "false",
		"dfs.datanode.hdfs-blocks-metadata.enabled":                 "false",
		"dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
		"dfs.namenode.replication.considerLoad":                     "false",
		"dfs.datanode.du.reserved":                                  "0",
		"dfs.disk.balancer.enabled":                                 "false",
	}
	if len(c.NameNodes) > 1 {
		c.addHA(site)
	} else {
		site["dfs.namenode.rpc-address"] = c.NameNodes[0].Addr()
		site["dfs.namenode.http-address"] = c.NameNodes[0].HTTPAddr()
	}
	maps.Copy(site, c.cfg.Properties)
	return site
}

// addHA adds the properties for two NameNodes with a JournalNode or a shared directory.
func (c *Cluster) addHA(site map[string]string) {
	var ids []string
	for _, d := range c.NameNodes {
		ids = append(ids, d.ID)
		site["dfs.namenode.rpc-address."+Nameservice+"."+d.ID] = d.Addr()
		site["dfs.namenode.http-address."+Nameservice+"."+d.ID] = d.HTTPAddr()
	}
	site["dfs.nameservices"] = Nameservice
	site["dfs.ha.namenodes."+Nameservice] = strings.Join(ids, ",")
	if c.journal != nil {
		site["dfs.namenode.shared.edits.dir"] = "qjournal://" + c.journal.Addr() + "/" + Nameservice
	} else {
		site["dfs.namenode.shared.edits.dir"] = "file://" + filepath.Join(c.cfg.Dir, "edits")
		site["dfs.namenode.rpc-bind-host"] = "0.0.0.0"
	}
	site["dfs.client.failover.proxy.provider."+Nameservice] = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
	site["dfs.ha.fencing.methods"] = "shell(/bin/true)"
	site["dfs.ha.tail-edits.period"] = "1s"
	site["dfs.ha.log-roll.period"] = "5s"
}

// daemonProperties returns a daemon's own properties.
func (c *Cluster) daemonProperties(d *Daemon) map[string]string {
	data := "file://" + filepath.Join(d.dir, "data")
	switch d.class {
	case nameNode:
		own := map[string]string{"dfs.namenode.name.dir": data}
		if len(c.NameNodes) > 1 {
			own["dfs.ha.namenode.id"] = d.ID
		}
		return own
	case journalNode:
		return map[string]string{"dfs.journalnode.edits.dir": filepath.Join(d.dir, "data"),
			"dfs.journalnode.rpc-address": d.Addr(), "dfs.journalnode.http-address": d.HTTPAddr()}
	case dataNode:
		return map[string]string{"dfs.datanode.data.dir": data, "dfs.datanode.hostname": d.ID,
			"dfs.datanode.address": d.ListenAddr(), "dfs.datanode.http.address": d.HTTPAddr(),
			"dfs.datanode.ipc.address": fmt.Sprintf("%s:%d", d.IP, d.ipc)}
	}
	return nil
}

type property struct {
	Name  string `xml:"name"`
	Value string `xml:"value"`
}

func writeXML(path string, properties map[string]string) error {
	doc := struct {
		XMLName    xml.Name   `xml:"configuration"`
		Properties []property `xml:"property"`
	}{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		doc.Properties = append(doc.Properties, property{name, properties[name]})
	}
	text, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o666)
}

// ConfBeside writes a configuration directory for HADOOP_CONF_DIR. With it, a process dials from a
// DataNode's address, like a process on the DataNode's machine.
func (c *Cluster) ConfBeside(d *Daemon) (dir string, err error) {
	dir = filepath.Join(d.dir, "beside")
	core, err := os.ReadFile(filepath.Join(c.Conf(), "core-site.xml"))
	if err != nil {
		return "", err
	}
	site := c.site()
	site["dfs.client.local.interfaces"] = d.IP
	return dir, errors.Join(
		writeXML(filepath.Join(dir, "hdfs-site.xml"), site),
		os.WriteFile(filepath.Join(dir, "core-site.xml"), core, 0o666))
}
