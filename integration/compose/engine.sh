#!/usr/bin/env bash
# engine.sh COMMAND…: runs a command that needs root, a Docker engine on this machine
# and compose. If no engine runs, it starts one while the command runs: with its images in
# the cache, its networks apart from the firewall's rules, and without leftovers. It
# installs missing programs only on a machine of continuous integration.
#
# Exit code 3: no engine is available, and a message said why; else the command's.
set -uo pipefail

unavailable=3
limit=${COMPOSE_LIMIT:-11m} # of the command
cache=${QUERN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quern}
data=$cache/docker

none() {
	echo "no Docker engine can be had: $*"
	exit $unavailable
}

has_compose() { docker compose version || docker-compose version; } >/dev/null 2>&1

answers() { timeout 20 docker info --format '{{.ServerVersion}}' >/dev/null 2>&1; }

missing() {
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

# ready installs what the engine and the tests need, only on a machine of CI.
ready() {
	[ -n "$(missing)" ] || return 0
	if [ "${CI:-}" = true ] && command -v apt-get >/dev/null; then
		# Nothing that is installed shall start by itself. What a run that was killed
		# here has left is known by its second line.
		local policy=/usr/sbin/policy-rc.d made=
		! grep -qs '^# quern$' $policy || rm -f $policy
		[ -e $policy ] || { printf '#!/bin/sh\n# quern\nexit 101\n' >$policy && chmod 755 $policy && made=1; }
		timeout 300 sh -c 'apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends \
			docker.io docker-compose iptables iproute2 util-linux debootstrap' >"$run/install" 2>&1 ||
			tail -n 5 "$run/install"
		[ -z "$made" ] || rm -f $policy
	fi
	local names
	names=$(missing | paste -sd ' ')
	[ -z "$names" ] || none "not installed: $names (CI=true has them installed)"
}

# emptied ends the containers of our own engine only.
emptied() {
	local left
	left=$(timeout 30 docker ps -aq 2>/dev/null)
	[ -z "$left" ] || timeout 60 docker rm -fv $left >/dev/null 2>&1
	timeout 30 docker network prune -f >/dev/null 2>&1
	timeout 30 docker volume ls -q 2>/dev/null | xargs -r timeout 60 docker volume rm -f >/dev/null 2>&1
	timeout 60 docker image prune -f >/dev/null 2>&1
}

# swept removes leftovers of a killed test from an engine that we have not started.
swept() {
	timeout 30 docker ps -aq --filter name=quern-test- | xargs -r timeout 60 docker rm -fv
	timeout 30 docker network ls -q --filter name=quern-test- | xargs -r timeout 30 docker network rm
	timeout 30 docker volume ls -q --filter name=quern-test- | xargs -r timeout 60 docker volume rm -f
} >/dev/null 2>&1

# ended ends a process that we have started, by its number, and its children.
ended() {
	local pid=$1 n
	kill -TERM "$pid" 2>/dev/null || return 0
	for n in $(seq 100); do
		kill -0 "$pid" 2>/dev/null || return 0
		sleep 0.2
	done
	kill -KILL -- "-$pid" 2>/dev/null
}

# ours reports whether a process is an engine that we have started, perhaps in a run that
# was killed.
ours() { [ -n "$1" ] && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -qF -- "--data-root $data "; }

stop() {
	local code=$?
	trap - EXIT INT TERM
	[ -z "${command:-}" ] || kill -TERM "$command" 2>/dev/null
	if [ -n "${engine:-}" ]; then
		emptied
		ended "$engine"
		rm -f "$data/engine"
	elif [ -n "${theirs:-}" ]; then
		swept
	fi
	if [[ $run == /tmp/quern-engine.* ]]; then # never of an empty name
		awk -v run="$run/" 'index($2, run) == 1 {print $2}' /proc/mounts | sort -r | xargs -r umount -l 2>/dev/null
		rm -rf "$run"
	fi
	exit $code
}

start() {
	local before n
	mkdir -p "$data" || none "no room for images at $data"
	exec 9>"$data/lock"
	flock -w 600 9 || none "another run uses the engine's directory $data"
	before=$(cat "$data/engine" 2>/dev/null)
	! ours "$before" || ended "$before"
	rm -f "$data/engine"
	export DOCKER_HOST=unix://$run/socket
	# No rule of the firewall is touched: containers see each other and this machine.
	setsid dockerd --host "$DOCKER_HOST" --data-root "$data" --exec-root "$run/exec" --pidfile "$run/pid" \
		--bridge none --iptables=false --ip-forward=false --ip-masq=false --userland-proxy=false \
		--log-level warn >"$run/log" 2>&1 9>&- &
	engine=$!
	echo $engine >"$data/engine"
	for n in $(seq 120); do
		answers && return 0
		kill -0 $engine 2>/dev/null || break
		sleep 0.5
	done
	tail -n 20 "$run/log"
	none "dockerd does not start"
}

[ $# -gt 0 ] || { echo "usage: engine.sh COMMAND…" >&2; exit 2; }
[ "$(id -u)" = 0 ] || none "only root can start one, and take apart what runs in one"
theirs=
if answers && has_compose; then
	local_engine || none "the one that answers is on another machine"
	theirs=1
fi
engine= command=
run=$(mktemp -d /tmp/quern-engine.XXXXXX) && [ -d "$run" ] || none "there is no room in /tmp"
trap stop EXIT
trap 'exit 130' INT TERM
ready
if [ -n "$theirs" ]; then
	swept
else
	start
	emptied # what a run that was killed has left
fi
timeout -k 60 "$limit" "$@" 9>&- &
command=$!
wait $command
code=$?
command=
exit $code
