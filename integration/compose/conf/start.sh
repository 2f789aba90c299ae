#!/bin/bash
# start.sh namenode|datanode: a daemon of HDFS, in any image that has Hadoop's hdfs.
set -eu
case $1 in
namenode)
	printf '%s\n' "$RACKS" >/tmp/racks
	[ -e /data/name/current/VERSION ] || hdfs namenode -format -force -nonInteractive
	exec hdfs namenode
	;;
datanode) exec hdfs datanode -D "dfs.datanode.hostname=$HOSTNAME" ;;
esac
