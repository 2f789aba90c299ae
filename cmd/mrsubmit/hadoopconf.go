package main

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/mapreduce/streaming"
)

// getConf answers hdfs getconf: properties and NameNodes of Hadoop's configuration.
func (t *tool) getConf(args []string) error {
	g, args, err := parseGeneric(args)
	if err != nil {
		return err
	}
	conf, _, err := configuration(g)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return usagef("want -confKey KEY, -namenodes or -nnRpcAddresses")
	}
	option, args := args[0], args[1:]
	switch {
	case option == "-confKey" && len(args) == 1:
		return t.confKey(g, conf, args[0])
	case option == "-confKey":
		return t.minusOne("usage: -confKey [key]")
	case option != "-namenodes" && option != "-nnRpcAddresses":
		return usagef("%s is not answered: want -confKey KEY, -namenodes or -nnRpcAddresses", option)
	case len(args) > 0:
		return t.minusOne("Did not expect argument: " + args[0])
	}
	addrs, err := conf.NameNodes()
	if err != nil {
		return t.minusOne("Incorrect configuration: namenode address dfs.namenode.servicerpc-address.[] or dfs.namenode.rpc-address.[] is not configured.")
	}
	if option == "-nnRpcAddresses" {
		_, err = fmt.Fprintln(t.stdout, strings.Join(addrs, "\n"))
		return err
	}
	hosts := slices.Clone(addrs)
	for i, addr := range addrs {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			hosts[i] = host
		}
	}
	_, err = fmt.Fprintln(t.stdout, strings.Join(hosts, " "))
	return err
}

// minusOne prints an error of Hadoop, which the exit code -1 follows.
func (t *tool) minusOne(text string) error {
	fmt.Fprintln(t.stderr, text)
	return exitCode(exitHadoopUsage)
}

// hadoopDefaults are the values of properties in Hadoop's own core-default.xml and hdfs-default.xml.
var hadoopDefaults = map[string]string{
	"fs.defaultFS":                     "file:///",
	"fs.permissions.umask-mode":        "022",
	"fs.trash.interval":                "0",
	"hadoop.security.authentication":   "simple",
	"hadoop.security.authorization":    "false",
	"io.file.buffer.size":              "4096",
	"dfs.blocksize":                    "134217728",
	"dfs.client.use.datanode.hostname": "false",
	"dfs.http.policy":                  "HTTP_ONLY",
	"dfs.namenode.http-address":        "0.0.0.0:9870",
	"dfs.namenode.https-address":       "0.0.0.0:9871",
	"dfs.permissions.enabled":          "true",
	"dfs.replication":                  "3",
}

// confKey prints a property. One that Hadoop may have by default, with a value that is not known here, is an error.
func (t *tool) confKey(g *streaming.Generic, conf hdfs.Conf, key string) error {
	value := cmp.Or(conf.Value(key), g.Property(key), hadoopDefaults[key]) // Property knows old names
	if value == "" {
		return t.minusOne(fmt.Sprintf("Configuration %s is missing. Quern reads core-site.xml and hdfs-site.xml, and knows few of Hadoop's defaults.", key))
	}
	_, err := fmt.Fprintln(t.stdout, value)
	return err
}
