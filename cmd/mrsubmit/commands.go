package main

import (
	"context"
	"math"
	"slices"
)

// command is a subcommand. A command that needs a running cluster has query, and any other one run.
type command struct {
	name     string
	group    string // in the list of commands
	synopsis string // its arguments
	summary  string
	help     string      // comes after the summary in the command's own help
	examples []string    // command lines without mrsubmit
	words    []candidate // completes the arguments that are not flags, the last one all further ones

	query    func(q *query, ctx context.Context) error
	flags    func(q *query)           // defines further flags; may be nil
	offline  func(args []string) bool // whether these arguments need no job tracker; may be nil
	min, max int                      // number of arguments that are not flags

	run func(t *tool, ctx context.Context, args []string) int // returns the exit code

	complete func(before []string) []choice // completes all words, after those before; may be nil
}

// anyNumber is a max of arguments without limit.
const anyNumber = math.MaxInt

func (c *command) execute(t *tool, ctx context.Context, args []string) int {
	if c.run != nil {
		return c.run(t, ctx, args)
	}
	return c.runQuery(t, ctx, args)
}

// find returns the command with a name, or nil.
func find(all []command, name string) *command {
	if i := slices.IndexFunc(all, func(c command) bool { return c.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func names(all []command) []string {
	var list []string
	for i := range all {
		list = append(list, all[i].name)
	}
	return list
}

// commands lists the subcommands. Those of a group follow each other.
func commands() []command {
	const jobs, results, past, cluster, shell = "Run and change jobs", "Look at jobs", "Ended jobs and their outputs", "The cluster", "This program"
	return []command{
		{name: "run", group: jobs, synopsis: runSynopsis, summary: "run a job and wait until it ends", help: runHelp, words: []candidate{ofFiles}, run: (*tool).run,
			examples: []string{
				"run ./examples/wordcount -input README.md -output /tmp/wc",
				"run -pool etl -deadline 90m ./myjob -input hdfs:///logs -output hdfs:///counts",
				"run -D mapreduce.job.reduces=8 ./myjob -h",
			}},
		{name: "streaming", group: jobs, synopsis: streamingSynopsis, summary: "run a job of Hadoop Streaming: the mapper and reducer are commands", help: streamingHelp, run: (*tool).streaming, words: []candidate{ofFiles},
			examples: []string{
				"streaming -files map.py,reduce.py -input hdfs:///logs -output hdfs:///counts -mapper map.py -reducer reduce.py",
				"streaming -D mapreduce.job.reduces=2 -input README.md -output /tmp/lines -mapper cat -reducer 'uniq -c'",
			}},
		{name: "wait", group: jobs, synopsis: "[-quiet] [-json] JOB|FLOW…", summary: "wait until jobs end; exit code 0 if all succeed",
			query: (*query).wait, flags: waitFlags, min: 1, max: anyNumber, words: []candidate{ofUnfinished}, examples: []string{"wait job_1764000000_0001 job_1764000000_0002"}},
		{name: "kill", group: jobs, synopsis: "[-reason TEXT] [-json] JOB|FLOW…", summary: "kill jobs, and all jobs of their flows",
			query: (*query).kill, flags: killFlags, min: 1, max: anyNumber, words: []candidate{ofUnfinished}, examples: []string{"kill -reason 'wrong input' job_1764000000_0001"}},
		{name: "suspend", group: jobs, synopsis: "[-now] [-json] JOB|FLOW…", summary: "give jobs no more slots; running attempts go on", help: suspendHelp,
			query: suspendCommand(true), flags: suspendFlags, min: 1, max: anyNumber, words: []candidate{ofUnfinished}, examples: []string{"suspend -now job_1764000000_0001"}},
		{name: "resume", group: jobs, synopsis: "[-json] JOB|FLOW…", summary: "end a suspension",
			query: suspendCommand(false), min: 1, max: anyNumber, words: []candidate{ofUnfinished}, examples: []string{"resume job_1764000000_0001"}},
		{name: "set", group: jobs, synopsis: "[-json] JOB|FLOW NAME=VALUE…", summary: "change settings of a running job", help: setHelp,
			query: (*query).set, min: 2, max: 100, words: []candidate{ofUnfinished, ofSettings}, examples: []string{"set job_1764000000_0001 priority=HIGH deadline=90m"}},
		{name: "kill-attempt", group: jobs, synopsis: "[-reason TEXT] [-json] ATTEMPT…", summary: "kill running attempts; their tasks run again", help: killAttemptHelp,
			query: endAttempts(false), flags: endAttemptFlags, min: 1, max: anyNumber, words: []candidate{ofRunningAttempts},
			examples: []string{"kill-attempt -reason 'reads from a slow disk' attempt_1764000000_0001_m_000003_1000"}},
		{name: "fail-attempt", group: jobs, synopsis: "[-reason TEXT] [-json] ATTEMPT…", summary: "fail running attempts: as kill-attempt, but it counts as a failure", help: failAttemptHelp,
			query: endAttempts(true), flags: endAttemptFlags, min: 1, max: anyNumber, words: []candidate{ofRunningAttempts},
			examples: []string{"fail-attempt attempt_1764000000_0001_m_000003_1000"}},

		{name: "list", group: results, synopsis: listSynopsis, summary: "list the jobs that the cluster knows, newest first, and flows with their predicted ends",
			query: (*query).list, flags: listFlags,
			examples: []string{"list -state running,failed -since 2h", "list -owner ann -name 'daily-*' -json"}},
		{name: "status", group: results, synopsis: "[-json] JOB|FLOW", summary: "print the state and progress of a job, or of each job of a flow",
			query: (*query).status, min: 1, max: 1, words: []candidate{ofJobs}, examples: []string{"status job_1764000000_0001"}},
		{name: "explain", group: results, synopsis: "[-json] [JOB|FLOW]", summary: "show why jobs have the slots they have, and their predicted ends", help: explainHelp,
			query: (*query).explain, max: 1, words: []candidate{ofUnfinished}, examples: []string{"explain", "explain job_1764000000_0001"}},
		{name: "whatif", group: results, synopsis: "[-jobs] [-json]", summary: "predict what each scheduler would make of the jobs that have not ended", help: whatIfHelp,
			query: (*query).whatIf, flags: func(q *query) {
				q.flags.BoolVar(&q.eachJob, "jobs", false, "print when each job would end, too")
			}, examples: []string{"whatif", "whatif -jobs"}},
		{name: "logs", group: results, synopsis: "[-f] [-n LINES] [-tail BYTES] [-json] JOB|FLOW [TASK]", summary: "print what attempts wrote to standard output and standard error", help: logsHelp,
			query: (*query).logs, flags: logFlags, min: 1, max: 2, words: []candidate{ofJobs, ofAttempts},
			examples: []string{"logs job_1764000000_0001", "logs -f -n 10 job_1764000000_0001", "logs -tail 0 job_1764000000_0001 task_1764000000_0001_m_000003"}},
		{name: "attempts", group: results, synopsis: "[-state STATES] [-json] JOB|FLOW [TASK]", summary: "list the attempts of a job, those that run first", help: attemptsHelp,
			query: (*query).listAttempts, flags: attemptFlags, min: 1, max: 2, words: []candidate{ofJobs, ofAttempts},
			examples: []string{"attempts -state running job_1764000000_0001", "attempts job_1764000000_0001 task_1764000000_0001_m_000003"}},
		{name: "counters", group: results, synopsis: "[-json] JOB|FLOW", summary: "print the counters of a job, or of each job of a flow",
			query: (*query).counters, min: 1, max: 1, words: []candidate{ofJobs}, examples: []string{"counters job_1764000000_0001"}},
		{name: "trace", group: results, synopsis: "[-o FILE] [-json] JOB|FLOW", summary: "print when and where the attempts of a job ran, as a trace for Perfetto", help: traceHelp,
			query: (*query).trace, flags: traceFlags, min: 1, max: 1, words: []candidate{ofJobs}, examples: []string{"trace -o job.json job_1764000000_0001"}},

		{name: "history", group: past, synopsis: historySynopsis, summary: "list ended jobs, newest first, or print all about a job or about each job of a flow",
			query: (*query).history, flags: historyFlags, max: 1, words: []candidate{ofJobs},
			examples: []string{"history -state failed -since 2026-01-31", "history job_1764000000_0001"}},

		{name: "cat", group: past, synopsis: "JOB|FLOW|PATH…", summary: "print outputs of jobs, wherever they are", help: catHelp,
			query: (*query).cat, offline: onlyPaths, min: 1, max: anyNumber, words: []candidate{ofOutputs},
			examples: []string{"cat job_1764000000_0001", "cat hdfs:///counts/part-r-00000"}},
		{name: "ls", group: past, synopsis: "[-json] JOB|FLOW|PATH…", summary: "list the files of outputs", help: lsHelp,
			query: (*query).ls, offline: onlyPaths, min: 1, max: anyNumber, words: []candidate{ofOutputs},
			examples: []string{"ls job_1764000000_0001", "ls hdfs:///counts"}},

		{name: "fs", group: past, synopsis: "[-fs URL] -COMMAND [options] PATH…", summary: "work with files, local and in HDFS, as hadoop fs does", help: fsHelp(), run: (*tool).fs, complete: completeFS,
			examples: []string{"fs -ls -h hdfs:///counts", "fs -text words.seq", "fs -fs hdfs://namenode:8020 -du -s /logs"}},

		{name: "top", group: cluster, synopsis: "", summary: "show the cluster and its jobs on the terminal, as they change", help: topHelp,
			query: (*query).top, examples: []string{"top"}},
		{name: "ui", group: cluster, synopsis: "[-port PORT] [-no-browser]", summary: "show the cluster's pages in a browser", help: uiHelp,
			query: (*query).showUI, flags: uiFlags, examples: []string{"ui", "ui -port 8088 -no-browser"}},
		{name: "cluster", group: cluster, synopsis: "[-json] | SUBCOMMAND …", summary: "show the cluster, or change it with a subcommand", help: clusterHelp(),
			run: (*tool).clusterCommand, examples: []string{"cluster", "cluster scheduler flex -metric sum-response"}},

		{name: "completion", group: shell, synopsis: "bash|zsh|fish", summary: "print a script with which a shell completes mrsubmit's arguments", help: completionHelp,
			run: (*tool).completion, words: []candidate{ofShells}, examples: []string{"completion bash"}},
	}
}
