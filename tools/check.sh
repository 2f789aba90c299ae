#!/usr/bin/env bash
# check.sh STEP...: runs the steps in turn, goes on after a failure, prints a
# summary and exits with 1 if any step has failed. A step whose tool cannot be
# had is skipped, and the summary names it; so it names what a step went without.
set -uo pipefail
cd "$(dirname "$0")/.."

# Version control is no business of a test binary, and a checkout that belongs to
# somebody else would make go build refuse it.
export GOFLAGS="${GOFLAGS:-} -buildvcs=false -trimpath"

# Everything but the race detector is built as mrsubmit builds jobs, so that all steps
# share what they compile.
cgo=$(go env CGO_ENABLED)
export CGO_ENABLED=0

skipped=3 # the exit code of a step that could not run
without=  # what the step that runs could not have, for the summary

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

step_vet() { go vet ./...; }

# staticcheck is pinned in a module of its own, so that no user of Quern gets it.
step_staticcheck() {
	local tool
	if ! tool=$(go tool -modfile=tools/go.mod -n staticcheck); then
		echo "staticcheck cannot be downloaded or built: skipped"
		return $skipped
	fi
	"$tool" ./...
}

# The packages that tools/norace lists start no goroutine. There the race detector finds
# nothing, and a computation takes ten times as long. Most packages wait at times, so four run
# at once.
step_unit() {
	local race=-race failed=0 raced pure
	raced=$(packages -v) && pure=$(packages) || return 1
	if ! ready_race; then
		echo "the race detector needs cgo and a C compiler: the tests run without it"
		race= without="the race detector"
	fi
	# What gates is the same every time; make unit RAPID_SEED=0 looks elsewhere.
	export RAPID_SEED="${RAPID_SEED:-1}"
	CGO_ENABLED=${race:+1} go test $race -timeout 10m $raced || failed=1
	go test -timeout 10m $pure || failed=1
	return $failed
}

# What an engineer waits for between two edits: results that go test has cached count, and
# the race detector is for step_unit.
step_quick() {
	local failed=0
	step_gofmt || failed=1
	RAPID_SEED="${RAPID_SEED:-1}" go test -short -timeout 10m $(go list ./... | grep -v '/integration') || failed=1
	return $failed
}

# packages lists what tools/norace lists, or, with -v, all others but the integration tests.
packages() { go list ./... | grep -v '/integration' | grep -E "$@" "^$(go list -m)/($(paste -sd '|' tools/norace))(/|\$)"; }

# More of what gates, and all of it under the race detector: about an hour.
step_soak() {
	local failed=0
	export RAPID_SEED="${RAPID_SEED:-0}"
	CGO_ENABLED=1 go test -race -count=1 -timeout 2h $(packages; packages -v) || failed=1
	go test -count=1 -timeout 2h ./jobtracker/core -run TestRandom -seeds 10000 || failed=1
	go test -count=1 -timeout 2h ./sim -run TestStorms -seeds 5000 || failed=1
	go test -count=1 -timeout 2h ./integration/hdfs -run TestJobs -megabytes 200 || failed=1
	go test -count=1 -timeout 2h ./integration/cluster -run TestChaos -chaos 20m -chaos-seed $RANDOM || failed=1
	return $failed
}

# The race detector links with C. Only a CI machine is changed for it.
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

# Downloads come first, so that they use up no test's time. Tests are skipped where a
# download fails. integration/hdfs, which takes longest, runs beside the other packages, and
# two of these at a time: mostly they wait for processes.
step_integration() {
	[ -d integration ] || { echo "no integration tests here"; return $skipped; }
	without=$(go run ./integration/downloads)
	local all said code=0
	all=$(go list ./integration/...) || return 1
	said=$(mktemp) || return 1
	local flags=(-count=1 -timeout 20m)
	go test "${flags[@]}" -p 1 $(grep -E "$hdfs" <<<"$all") >"$said" 2>&1 &
	go test "${flags[@]}" -p 2 -parallel 3 $(grep -vE "$hdfs" <<<"$all") || code=1
	wait $! || code=1
	cat "$said"
	rm -f "$said"
	return $code
}

hdfs='/integration/hdfs(/|$)'

# A cluster of containers, where an engine for them can be had: of its parts those that
# nothing else shows. That a run hangs is prevented thrice: by the test, by go test and by
# engine.sh.
step_compose() { containers -short; }

# All parts of that test.
step_cluster() { containers; }

containers() {
	[ -d integration/compose ] || { echo "no cluster of containers here"; return $skipped; }
	local said code
	said=$(mktemp) || return 1
	QUERN_COMPOSE=1 COMPOSE_LIMIT=18m integration/compose/engine.sh \
		go test -count=1 -v -timeout 17m30s "$@" ./integration/compose | tee "$said"
	code=${PIPESTATUS[0]}
	! grep -q '^--- SKIP: TestCluster' "$said" || code=$skipped
	rm -f "$said"
	return "$code"
}

# The real peers, asked again. It never gates.
step_compat() {
	local said code
	said=$(mktemp) || return 1
	go run ./integration/compat | tee "$said"
	code=${PIPESTATUS[0]}
	without=$(awk -F ' *[|] *' '$6 == "skipped" { print $3 }' "$said" | sort -u | paste -sd ' ')
	rm -f "$said"
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
for name in "$@"; do
	echo "== $name"
	began=$SECONDS without=
	"step_$name"
	case $? in
	0) result=ok ;;
	"$skipped") result=skipped ;;
	*) result=FAILED failures=$((failures + 1)) ;;
	esac
	summary+=$(printf '%-12s %-8s %4ds%s' "$name" "$result" $((SECONDS - began)) "${without:+  without $without}")$'\n'
done
printf '\n%s' "$summary"
if [ "$failures" -gt 0 ]; then
	echo "$failures failed"
	exit 1
fi
echo "all passed"
