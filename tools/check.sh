#!/usr/bin/env bash
# check.sh STEP...: runs the steps one after the other, even after a failure. A step that ends
# in & runs beside those after it, and its output comes last: for steps that often wait. check.sh
# prints a summary and exits with 1 if any step has failed. A step is skipped if its tool is
# unavailable. The summary names skipped steps and missing programs.
set -uo pipefail
cd "$(dirname "$0")/.."

# A test binary needs no revision, and go build -buildvcs refuses a checkout of another user.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false -trimpath"

# Except for the race detector, build as mrsubmit builds jobs, so that all steps share the
# build cache.
cgo=$(go env CGO_ENABLED)
export CGO_ENABLED=0

skipped=3 # the exit code of a step that could not run
missing=  # programs that the running step lacks, for the summary

step_gofmt() {
	local files
	files=$(git ls-files --cached --others --exclude-standard -- '*.go' 2>/dev/null) ||
		files=$(find . -name '*.go' -not -path './.git/*')
	files=$(printf '%s\n' "$files" | while read -r f; do [ -f "$f" ] && echo "$f"; done)
	[ -n "$files" ] || return 0
	local unformatted
	unformatted=$(printf '%s\n' "$files" | tr '\n' '\0' | xargs -0 gofmt -l) || return 1
	[ -z "$unformatted" ] && return 0
	printf 'not formatted (run gofmt -w):\n%s\n' "$unformatted"
	return 1
}

# Builds, staticcheck and simulations collect garbage less often, for a sixth less processor time.
step_vet() { GOGC=400 go vet ./... && { ! has_chromedp || (cd integration/browser && go vet ./...); }; }

# Its own module pins staticcheck, so that users of Quern do not download it.
step_staticcheck() {
	local tool
	if ! tool=$(go tool -modfile=tools/go.mod -n staticcheck); then
		echo "staticcheck cannot be downloaded or built: skipped"
		return $skipped
	fi
	GOGC=400 nice "$tool" ./...
}

# Packages in tools/norace start no goroutine: there the race detector finds nothing and takes
# ten times as long. The simulation runs both ways, most of its seeds without the race detector.
# One package more than there are processors runs at the same time, since many of the tests wait.
# go test need not vet: step_vet checks more. Timeouts end hangs: packages take less than a fifth of them.
step_unit() {
	local race=-race raced
	raced=$(packages -v) || return 1
	if ! ready_race; then
		echo "the race detector needs cgo and a C compiler: the tests run without it"
		race= missing="the race detector"
	fi
	# Gating tests use the same seed every time; make unit RAPID_SEED=0 tries new ones.
	local -x RAPID_SEED="${RAPID_SEED:-1}" TMPDIR=${memory:-${TMPDIR:-/tmp}}
	# The race detector waits at the end of each process for late races: one second, if not told less.
	local -x GORACE="${GORACE:-atexit_sleep_ms=100}" CGO_ENABLED=${race:+1}
	go test $race -vet=off -p $(($(getconf _NPROCESSORS_ONLN) + 1)) -timeout 40m $raced
}

# Tests that only compute take the processor time that waiting tests leave over.
step_computed() {
	local pure
	pure=$(packages) || return 1
	local -x RAPID_SEED="${RAPID_SEED:-1}" TMPDIR=${memory:-${TMPDIR:-/tmp}}
	GOGC=400 nice go test -vet=off -timeout 80m ./sim $pure
}

# directory_in_memory makes a directory for files of tests, if there is memory for it and programs can be
# executed there. Tests that write much take a tenth less processor time than on a disk.
directory_in_memory() {
	local free dir
	free=$(df -k --output=avail /dev/shm 2>/dev/null | tail -1)
	[ -z "${TMPDIR:-}" ] && [ "${free:-0}" -ge 6000000 ] && dir=$(mktemp -d /dev/shm/quern-XXXXXX) || return
	chmod 1777 "$dir" # as /tmp: tests of modes need directories that other users can enter
	if cp "$(type -P true)" "$dir" && "$dir/true"; then
		rm "$dir/true"
		echo "$dir"
	else
		rm -rf "$dir"
		return 1
	fi
}

# For the edit loop: uses the results that go test has cached, without the race detector.
step_quick() {
	local failed=0
	step_gofmt || failed=1
	RAPID_SEED="${RAPID_SEED:-1}" go test -short -timeout 10m $(go list ./... | grep -v '/integration') || failed=1
	return $failed
}

# packages lists the packages in tools/norace or, with -v, all others except the integration
# tests.
packages() { go list ./... | grep -v '/integration' | grep -E "$@" "^$(go list -m)/($(paste -sd '|' tools/norace))(/|\$)"; }

# Runs the gating tests with more seeds, all under the race detector: about an hour.
step_soak() {
	local failed=0
	export RAPID_SEED="${RAPID_SEED:-0}"
	CGO_ENABLED=1 go test -race -count=1 -timeout 2h $(packages; packages -v) || failed=1
	go test -count=1 -timeout 2h ./jobtracker/core -run TestRandom -seeds 10000 || failed=1
	CGO_ENABLED=1 go test -race -count=1 -timeout 2h ./sim -run TestStorms -seeds 100 || failed=1
	go test -count=1 -timeout 2h ./sim -seeds 5000 -lasting 2000 -rotating 500 || failed=1
	go test -count=1 -timeout 2h ./examples/components -edges 1000000 || failed=1
	go test -count=1 -timeout 2h ./cmd/mrsubmit -run TestStreamingCommands -megabytes 1000 || failed=1
	go test -count=1 -timeout 2h ./integration/hdfs -run TestJobs -megabytes 200 || failed=1
	go test -count=1 -timeout 2h ./integration/cluster -run TestTooManyJobs -too-many 10000 -too-many-time 1m || failed=1
	go test -count=1 -timeout 2h ./integration/cluster -run TestChaos -chaos 30m -chaos-seed $RANDOM -chaos-report "$PWD/docs/chaos.md" || failed=1
	return $failed
}

# The race detector needs a C compiler, which this installs only on a CI machine.
ready_race() {
	has_cc && return 0
	if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -q && apt-get install -qy --no-install-recommends gcc libc6-dev
	fi >/dev/null 2>&1
	has_cc
}

has_cc() {
	[ "$cgo" = 1 ] && command -v "$(go env CC | cut -d' ' -f1)" >/dev/null
}

# download fills the cache for step_integration, once, so that downloads do not use up the tests' time
# limits. If one fails, its tests are skipped.
downloaded= lacking=
download() {
	[ -z "$downloaded" ] && [ -d integration ] || return 0
	downloaded=1 lacking=$(go run ./integration/downloads)
}

# The tests mostly wait for processes, so several run at the same time. The tests over HDFS run in two
# halves, each with a cluster of its own. TestChaos has a process of its own: go test would begin it
# last, although it takes longest.
step_integration() {
	[ -d integration ] || { echo "no integration tests here"; return $skipped; }
	download
	build_programs
	missing=$lacking
	local others dir code=0 pid pids=()
	others=$(go list ./integration/... | grep -vE '/integration/hdfs$') || return 1
	dir=$(mktemp -d) || return 1
	local flags=(-count=1 -vet=off -timeout 60m)
	go test "${flags[@]}" -run '^Test[A-I]' ./integration/hdfs >"$dir/1" 2>&1 &
	pids+=($!)
	go test "${flags[@]}" -skip '^Test[A-I]' ./integration/hdfs >"$dir/2" 2>&1 &
	pids+=($!)
	go test "${flags[@]}" -run '^TestChaos$' ./integration/cluster >"$dir/3" 2>&1 &
	pids+=($!)
	go test "${flags[@]}" -p 2 -parallel 2 -skip '^TestChaos$' $others || code=1
	for pid in "${pids[@]}"; do
		wait "$pid" || code=1
	done
	cat "$dir"/[0-9]
	rm -rf "$dir"
	return $code
}

# Opens the three main pages in a headless Chromium. make compat opens all of them. Screenshots stay in
# .ci/output.
step_browser() {
	[ -d integration/browser ] || { echo "no browser tests here"; return $skipped; }
	if ! ready_browser; then
		echo "no browser is installed: skipped"
		missing=Chromium
		return $skipped
	elif ! has_chromedp; then
		echo "chromedp cannot be downloaded: skipped"
		missing=chromedp
		return $skipped
	fi
	build_programs
	local output=$PWD/.ci/output/pages
	rm -rf "$output"
	mkdir -p "$output"
	(cd integration/browser && go test -short -v -count=1 -vet=off -timeout 30m . -args -screenshots "$output")
}

# Like the race detector, a browser is installed only on a CI machine.
ready_browser() {
	local browser
	for browser in chromium chromium-browser google-chrome chrome; do
		command -v $browser >/dev/null && return 0
	done
	if [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -q && apt-get install -qy --no-install-recommends chromium
	fi >/dev/null 2>&1
	command -v chromium >/dev/null
}

has_chromedp() { [ -d integration/browser ] && (cd integration/browser && go mod download github.com/chromedp/chromedp >/dev/null 2>&1); }

# build_programs builds the programs of all these tests and of the images once: six test binaries would
# link them. Without debug information a link takes two thirds of the time. What fails here fails in the
# tests, with a text.
build_programs() {
	[ -z "$programs" ] && [ -d integration ] || return 0
	programs=$(mktemp -d) || return
	chmod 755 "$programs" # a test runs a program as another user
	local stamp=$(go list -m)/cmd/internal/build
	go build -ldflags="-s -w -X $stamp.revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
		-X $stamp.version=$(git describe --tags --dirty 2>/dev/null || echo devel)" -o "$programs/" \
		./cmd/{jobtracker,tasktracker,mrsubmit} ./examples/{wordcount,sort,grep,tpch} \
		./integration/trial/{paced,bad,stages} ./integration/embedded/faulty && export QUERN_TEST_PROGRAMS=$programs
}

# Runs the parts of the container test that no other test covers, if a Docker engine is
# available. The test, go test and engine.sh each have a time limit.
step_compose() { containers -short; }

# Runs all parts of that test.
step_cluster() { containers; }

containers() {
	[ -d integration/compose ] || { echo "no cluster of containers here"; return $skipped; }
	local output code
	output=$(mktemp) || return 1
	QUERN_COMPOSE=1 COMPOSE_LIMIT=51m integration/compose/engine.sh \
		go test -count=1 -vet=off -v -timeout 50m "$@" ./integration/compose | tee "$output"
	code=${PIPESTATUS[0]}
	! grep -q '^--- SKIP: TestCluster' "$output" || code=$skipped
	rm -f "$output"
	return "$code"
}

# Compares recorded answers with the real programs. It never gates.
step_compat() {
	local output code
	output=$(mktemp) || return 1
	go run ./integration/compat | tee "$output"
	code=${PIPESTATUS[0]}
	missing=$(awk -F ' *[|] *' '$6 == "skipped" { print $3 }' "$output" | sort -u | paste -sd ' ')
	rm -f "$output"
	return "$code"
}

step_fuzz() {
	local package target failed=0
	for package in $(go list ./...); do
		for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz'); do
			echo "$package $target"
			go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-10s}" -fuzzminimizetime 10x "$package" || failed=1
		done
	done
	return $failed
}

failures=0
summary=
outputs=$(mktemp -d) || exit 1 # of the steps that have failed, by name
beside=() # steps that run beside others: process, name and output

# summarize NAME CODE SECONDS
summarize() {
	local result
	case $2 in
	0) result=ok ;;
	"$skipped") result=skipped ;;
	*) result=FAILED failures=$((failures + 1)) ;;
	esac
	[ $result = FAILED ] || rm -f "$outputs/$1"
	summary+=$(printf '%-12s %-8s %4ds%s' "$1" "$result" "$3" "${missing:+  without $missing}")$'\n'
}

stop_beside() {
	local step
	for step in "${beside[@]}"; do
		kill -TERM -- "-${step%% *}" 2>/dev/null && wait "${step%% *}"
	done
}
memory=   # directory for the files of unit tests; empty: the usual one
programs= # directory that build_programs has filled
trap 'stop_beside; rm -rf "$outputs" $memory $programs' EXIT
trap 'exit 130' INT TERM
[[ " $* " != *" unit "* ]] || memory=$(directory_in_memory)

for name in "$@"; do
	missing=
	if [[ $name == *'&' ]]; then
		name=${name%&}
		ready_race # may install programs, as download and compose do; only one can at a time
		case $name in
		compose | integration)
			download
			build_programs
			;;
		browser)
			ready_browser
			build_programs
			;;
		esac
		output=$outputs/$name
		set -m # its own process group, so that an interrupt reaches all of it
		(
			SECONDS=0
			"step_$name" >"$output" 2>&1
			code=$?
			echo $SECONDS "$missing" >"$output.result"
			exit $code
		) &
		set +m
		beside+=("$! $name $output")
		continue
	fi
	echo "== $name"
	began=$SECONDS
	exec 3> >(tee "$outputs/$name")
	pid=$!
	"step_$name" >&3 2>&1 3>&-
	code=$?
	exec 3>&-
	wait "$pid"
	summarize "$name" "$code" $((SECONDS - began))
done
for step in "${beside[@]}"; do
	read -r pid name output <<<"$step"
	echo "== $name"
	wait "$pid"
	code=$? took=0 missing=
	read -r took missing <"$output.result"
	cat "$output"
	rm -f "$output.result"
	summarize "$name" $code "$took"
done
if [ "$failures" -gt 0 ]; then
	# Last, since of a long log often only the end is kept.
	printf '\n'
	go run ./internal/failures "$outputs"/*
	printf '\n%s%d failed\n' "$summary" "$failures"
	exit 1
fi
printf '\n%s' "$summary"
echo "all passed"
