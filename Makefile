# The commands of a contributor; CONTRIBUTING.md explains them.

FUZZTIME ?= 10s
BENCHFLAGS ?=
SCALE ?= 0.01
ONLY ?=

.PHONY: test quick compat unit lint integration cluster cluster-down cluster-test fuzz soak bench bench-cluster bench-hdfs bench-schedulers bench-mix bench-pair bench-pages bench-steps bench-files bench-hadoop bench-mrjob mutants tpch papers browser screenshots

# Runs all gating tests, with a summary at the end.
test:
	@tools/check.sh gofmt vet 'compose&' 'staticcheck&' 'browser&' 'integration&' 'computed&' unit

# Runs gofmt and every package's own tests without the race detector, for the edit loop: two
# minutes.
quick:
	@tools/check.sh quick

# Compares the recorded answers of Hadoop, DuckDB and Spark with the real programs. It never
# gates: docs/compat.md.
compat:
	@tools/check.sh compat

# Runs every package's own tests, under the race detector unless they only compute.
unit:
	@tools/check.sh 'computed&' unit

# Runs gofmt, go vet and staticcheck.
lint:
	@tools/check.sh gofmt vet staticcheck

# Runs jobs as real processes, from the command line to the output.
integration:
	@tools/check.sh integration

# Opens the main pages in a headless Chromium. make compat opens all of them.
browser:
	@tools/check.sh browser

# Draws the images of README.md and docs/pages.md: needs a Chromium.
screenshots:
	cd integration/browser && go test -count=1 -timeout 20m -run '^TestImages$$' . -args -images ../../docs/pages

# Starts a cluster of containers over HDFS to try things: docs/compose.md. HDFS_IMAGE is the
# image of HDFS; HDFS_IMAGE=build builds one.
cluster:
	@go run ./integration/compose/cluster up

# Stops that cluster and removes its volumes.
cluster-down:
	@go run ./integration/compose/cluster down -volumes

# Starts such a cluster, injects faults while jobs run, and removes everything. make test
# runs a part of it.
cluster-test:
	@tools/check.sh cluster

# Runs every fuzz target for FUZZTIME.
fuzz:
	@FUZZTIME=$(FUZZTIME) tools/check.sh fuzz

# Runs make test with more seeds, more text and longer faults, and all of cluster-test:
# about an hour.
soak:
	@tools/check.sh soak cluster

# Compares with the tools of a single machine: BENCHFLAGS="-size 100M -runs 1 -only 'word count'"; with PEERS=1 also with
# Hadoop and Spark: BENCHFLAGS="-sizes 100M,1G -only sort"
bench:
ifdef PEERS
	go run ./bench peers $(BENCHFLAGS)
else
	go run ./bench machine $(BENCHFLAGS)
endif

# Measures failover, small jobs and the log on processes: BENCHFLAGS="-runs 10 -only killed"
bench-cluster:
	go run ./bench cluster $(BENCHFLAGS)

# Measures jobs and reads over a real HDFS: BENCHFLAGS="-size 1G -runs 5 -only locality"
bench-hdfs:
	go run ./bench hdfs $(BENCHFLAGS)

# Compares schedulers on a cluster, an hour: BENCHFLAGS="-seeds 2 -only HMHS"
bench-schedulers:
	go run ./bench schedulers $(BENCHFLAGS)

# Measures delay rules on queries, sorts and greps over a real HDFS: BENCHFLAGS="-seeds 1"
bench-mix:
	go run ./bench mix $(BENCHFLAGS)

# Compares the working tree with a revision: REV=main BENCHFLAGS="-dir /dev/shm/pair -only sort"
bench-pair:
	go run ./bench pair -rev '$(REV)' $(BENCHFLAGS)

# Measures the web pages of a large cluster: their times, and what open pages cost the leader.
bench-pages:
	go run ./bench pages $(BENCHFLAGS)

# Measures Steps of both cores in simulated fleets, beside the simulation's model of their cost:
# BENCHFLAGS=-fit prints new rates
bench-steps:
	go run ./bench steps $(BENCHFLAGS)

# Compares codecs of input, output and map output with plain files.
bench-files:
	go run ./bench files $(BENCHFLAGS)

# Compares word counts with those of Hadoop's local runner: BENCHFLAGS="-size 100M -runs 1"
bench-hadoop:
	go run ./bench hadoop $(BENCHFLAGS)

# Measures a small job of mrjob, and what its time is spent on.
bench-mrjob:
	go run ./bench mrjob $(BENCHFLAGS)

# Plants faults in the code and prints which test notices each: an hour, or ONLY=REGEXP.
mutants:
	@go run ./internal/mutants -only '$(ONLY)'

# Runs TPC-H's queries and compares with DuckDB's answers: SCALE=1 BENCHFLAGS="-spark -runs 1"
tpch:
	go run ./bench tpch -scale $(SCALE) $(BENCHFLAGS)

# Runs the papers' full simulations and writes their pages in docs/papers: some minutes on
# two cores.
papers:
	go run ./cmd/mrsim flex -experiments 400 -plots docs/papers -page docs/papers/flex.md
	go run ./cmd/mrsim flowflex -experiments 100 -plots docs/papers -page docs/papers/flowflex.md
	go run ./cmd/mrsim overlap -experiments 10 -plots docs/papers -page docs/papers/overlap.md
	go run ./cmd/mrsim hmhs -experiments 20 -plots docs/papers -page docs/papers/hmhs.md
	go run ./cmd/mrsim delay -experiments 20 -plots docs/papers -page docs/papers/delay.md
