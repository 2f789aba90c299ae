#!/usr/bin/env bash
# engine.sh COMMAND…: runs a command that needs root, compose and a Docker engine on this
# machine. If no engine runs, it starts one and stops it after the command. That engine has
# its images in the cache, does not change the firewall's rules, and leaves no containers.
# The script installs missing programs only with CI=true.
#
# Exit code 3: no engine is available, for the printed reason; else the command's exit code.
set -uo pipefail

unavailable=3
limit=${COMPOSE_LIMIT:-11m} # of the command
cache=${QUERN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quern}
data=$cache/docker

skip() {
	echo "no Docker engine is available: $*"
	exit $unavailable
}

has_compose() { docker compose version || docker-compose version; } >/dev/null 2>&1

engine_runs() { timeout 20 docker info --format '{{.ServerVersion}}' >/dev/null 2>&1; }

missing_programs() {
	local need
	for need in dockerd docker iptables tc nsenter; do
		command -v "$need" >/dev/null || echo "$need"
	done
	has_compose || echo docker-compose
}

# local_engine reports whether the engine is on this machine.
local_engine() {
	local host=${DOCKER_HOST:-$(docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null)}
	[[ ${host:-unix://} == unix://* ]]
}

# install_missing installs programs that the engine and the tests need, only with CI=true.
install_missing() {
	[ -n "$(missing_programs)" ] || return 0
	if [ "${CI:-}" = true ] && command -v apt-get >/dev/null; then
		# policy-rc.d keeps installed daemons from starting. Its second line marks a file
		# that a killed run has left.
		local policy=/usr/sbin/policy-rc.d made=
		! grep -qs '^# quern$' $policy || rm -f $policy
		[ -e $policy ] || { printf '#!/bin/sh\n# quern\nexit 101\n' >$policy && chmod 755 $policy && made=1; }
		timeout 300 sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
			docker.io docker-compose iptables iproute2 util-linux debootstrap' >"$run/install" 2>&1 ||
			tail -n 5 "$run/install"
		[ -z "$made" ] || rm -f $policy
	fi
	local names
	names=$(missing_programs | paste -sd ' ')
	[ -z "$names" ] || skip "not installed: $names (CI=true has them installed)"
}

# remove_all removes all containers, networks and volumes. Only for our own engine.
remove_all() {
	local left
	left=$(timeout 30 docker ps -aq 2>/dev/null)
	[ -z "$left" ] || timeout 60 docker rm -fv $left >/dev/null 2>&1
	timeout 30 docker network prune -f >/dev/null 2>&1
	timeout 30 docker volume ls -q 2>/dev/null | xargs -r timeout 60 docker volume rm -f >/dev/null 2>&1
	timeout 60 docker image prune -f >/dev/null 2>&1
}

# remove_leftovers removes leftovers of a killed test from an engine that was running before.
remove_leftovers() {
	timeout 30 docker ps -aq --filter name=quern-test- | xargs -r timeout 60 docker rm -fv
	timeout 30 docker network ls -q --filter name=quern-test- | xargs -r timeout 30 docker network rm
	timeout 30 docker volume ls -q --filter name=quern-test- | xargs -r timeout 60 docker volume rm -f
} >/dev/null 2>&1

# terminate ends a process that this script has started, and its children.
terminate() {
	local pid=$1 n
	kill -TERM "$pid" 2>/dev/null || return 0
	for n in $(seq 100); do
		kill -0 "$pid" 2>/dev/null || return 0
		sleep 0.2
	done
	kill -KILL -- "-$pid" 2>/dev/null
}

# is_ours reports whether a process is an engine of this script, or of a killed run of it.
is_ours() { [ -n "$1" ] && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF -- "--data-root $data "; }

stop() {
	local code=$?
	trap - EXIT INT TERM
	[ -z "${command:-}" ] || kill -TERM "$command" 2>/dev/null
	if [ -n "${engine:-}" ]; then
		remove_all
		terminate "$engine"
		rm -f "$data/engine"
	elif [ -n "${running_engine:-}" ]; then
		remove_leftovers
	fi
	if [[ $run == /tmp/quern-engine.* ]]; then # guards against an empty name
		awk -v run="$run/" 'index($2, run) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount -l 2>/dev/null
		rm -rf "$run"
	fi
	exit $code
}

start() {
	local before n
	mkdir -p "$data" || skip "cannot create $data for images"
	exec 9>"$data/lock"
	flock -w 600 9 || skip "another run uses the engine's directory $data"
	before=$(cat "$data/engine" 2>/dev/null)
	! is_ours "$before" || terminate "$before"
	rm -f "$data/engine"
	export DOCKER_HOST=unix://$run/socket
	# Firewall rules stay as they are: containers can reach each other and this machine.
	setsid dockerd --host "$DOCKER_HOST" --data-root "$data" --exec-root "$run/exec" --pidfile "$run/pid" \
		--bridge none --iptables=false --ip-forward=false --ip-masq=false --userland-proxy=false \
		--log-level warn >"$run/log" 2>&1 9>&- &
	engine=$!
	echo $engine >"$data/engine"
	for n in $(seq 120); do
		engine_runs && return 0
		kill -0 $engine 2>/dev/null || break
		sleep 0.5
	done
	tail -n 20 "$run/log"
	skip "dockerd does not start"
}

[ $# -gt 0 ] || { echo "usage: engine.sh COMMAND…" >&2; exit 2; }
[ "$(id -u)" = 0 ] || skip "only root can start one and inject faults"
running_engine=
if engine_runs && has_compose; then
	local_engine || skip "the running one is on another machine"
	running_engine=1
fi
engine= command=
run=$(mktemp -d /tmp/quern-engine.XXXXXX) && [ -d "$run" ] || skip "cannot create a directory in /tmp"
trap stop EXIT
trap 'exit 130' INT TERM
install_missing
if [ -n "$running_engine" ]; then
	remove_leftovers
else
	start
	remove_all # left by a killed run
fi
timeout -k 60 "$limit" "$@" 9>&- &
command=$!
wait $command
code=$?
command=
exit $code
