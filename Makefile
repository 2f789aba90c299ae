# The commands of a contributor; CONTRIBUTING.md explains them.

FUZZTIME ?= 10s
BENCHFLAGS ?=
SCALE ?= 0.01

.PHONY: test quick compat unit lint integration cluster cluster-down cluster-test fuzz soak bench bench-cluster bench-hdfs bench-schedulers bench-mix bench-pair tpch papers

# Everything that must pass before a change goes in, with a summary at the end.
test:
	@tools/check.sh gofmt vet staticcheck unit integration compose

# For the edit loop, less than two minutes: every package's own tests without the race
# detector, and gofmt.
quick:
	@tools/check.sh quick

# The real peers, asked again what is recorded of them; it never gates: docs/compat.md.
compat:
	@tools/check.sh compat

# Every package's own tests, under the race detector.
unit:
	@tools/check.sh unit

# Formatting and static analysis.
lint:
	@tools/check.sh gofmt vet staticcheck

# Jobs as real processes, from the command line to the output.
integration:
	@tools/check.sh integration

# A cluster of containers over HDFS to try things on: docs/compose.md. Its HDFS is
# HDFS_IMAGE, or with HDFS_IMAGE=build made here.
cluster:
	@go run ./integration/compose/cluster up

# The end of it, with all that it has stored.
cluster-down:
	@go run ./integration/compose/cluster down -volumes

# Starts such a cluster, takes it apart while jobs run, and leaves nothing. make test has
# a part of it.
cluster-test:
	@tools/check.sh cluster

# Every fuzz target for FUZZTIME.
fuzz:
	@FUZZTIME=$(FUZZTIME) tools/check.sh fuzz

# More seeds, more text and longer faults than make test has, and all of cluster-test: about
# an hour.
soak:
	@tools/check.sh soak cluster

# Quern beside what a single machine offers: BENCHFLAGS="-size 100M -runs 1 -only 'word count'"
bench:
	go run ./bench machine $(BENCHFLAGS)

# A cluster of processes: failover, small jobs, the log: BENCHFLAGS="-runs 10 -only killed"
bench-cluster:
	go run ./bench cluster $(BENCHFLAGS)

# Jobs and reads over a real HDFS: BENCHFLAGS="-size 1G -runs 5 -only locality"
bench-hdfs:
	go run ./bench hdfs $(BENCHFLAGS)

# What schedulers make of a cluster, an hour: BENCHFLAGS="-seeds 2 -only HMHS"
bench-schedulers:
	go run ./bench schedulers $(BENCHFLAGS)

# Delay rules on a mix of queries, sorts and greps over a real HDFS: BENCHFLAGS="-seeds 1"
bench-mix:
	go run ./bench mix $(BENCHFLAGS)

# The working tree beside another revision: REV=main BENCHFLAGS="-dir /dev/shm/pair -only sort"
bench-pair:
	go run ./bench pair -rev '$(REV)' $(BENCHFLAGS)

# TPC-H's queries, answers held to DuckDB's: SCALE=1 BENCHFLAGS="-spark -runs 1"
tpch:
	go run ./bench tpch -scale $(SCALE) $(BENCHFLAGS)

# The full simulations of the papers, and the pages about them in docs/papers: some
# minutes on two cores.
papers:
	go run ./cmd/mrsim flex -experiments 400 -plots docs/papers -page docs/papers/flex.md
	go run ./cmd/mrsim flowflex -experiments 100 -plots docs/papers -page docs/papers/flowflex.md
	go run ./cmd/mrsim overlap -experiments 10 -plots docs/papers -page docs/papers/overlap.md
	go run ./cmd/mrsim hmhs -experiments 20 -plots docs/papers -page docs/papers/hmhs.md
	go run ./cmd/mrsim delay -experiments 20 -plots docs/papers -page docs/papers/delay.md
