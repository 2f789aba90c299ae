package mapreduce

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/hadoop"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/property"
)

// compiledWith compiles jobs with the properties of a command line, each name=value.
func compiledWith(jobs []*Job, properties ...string) (*compilation, error) {
	all := make(map[string]string)
	for _, p := range properties {
		name, value, _ := strings.Cut(p, "=")
		all[name] = value
	}
	return analyse(jobs, bridge.Settings{Inputs: []string{"in"}, Output: "out", Dir: "/w", Properties: all})
}

func someJob(name string) *Job { return Fold(wordPairs(), Sum).Job(name) }

// isUsage reports whether an error is a usage error.
func isUsage(err error) bool {
	_, ok := errors.AsType[bridge.UsageError](err)
	return ok
}

// TestHadoopProperties: each property of Hadoop has an effect, is refused, or causes one
// warning; so do its old names.
func TestHadoopProperties(t *testing.T) {
	const (
		honoured = "honoured"
		accepted = "accepted"
		warned   = "warned"
	)
	for setting, want := range map[string]string{
		// refused, with these words of the reason
		"io.compression.codecs=x":                                                  "suffix",
		"io.serializations=x":                                                      "Codec",
		"parquet.read.schema=x":                                                    "formats/parquet",
		"parquet.avro.write-old-list-structure=false":                              "formats/parquet",
		"mapreduce.map.env.TZ=UTC":                                                 "environment",
		"mapreduce.input.lineinputformat.linespermap=0":                            "must be a whole number from 1",
		"mapreduce.output.fileoutputformat.compress=yes":                           "true or false",
		"mapred.output.compression.codec=com.hadoop.compression.lzo.LzoCodec":      "there are BZip2Codec, DefaultCodec, GzipCodec, Lz4Codec, SnappyCodec, ZStandardCodec",
		"mapreduce.job.inputformat.class=org.apache.hadoop.mapred.TextInputFormat": "sets the inputs",
		"mapreduce.job.outputformat.class=x":                                       "Job.Format",
		"mapreduce.job.combine.class=x":                                            "Pairs.Combine",
		"mapreduce.job.partitioner.class=x":                                        "Pairs.Partition",
		"mapred.partitioner.class=x":                                               "Pairs.Partition",
		"mapreduce.job.output.key.comparator.class=x":                              "order",
		"mapred.output.value.groupfn.class=x":                                      "order",
		"mapred.text.key.partitioner.options=-k1,2":                                "Pairs.Partition",
		"map.output.key.field.separator=.":                                         "order",
		"mapred.skip.on=true":                                                      "skip.maxrecords",
		"mapred.input.dir=/x":                                                      "-input",
		"mapreduce.output.fileoutputformat.outputdir=/x":                           "-output",
		"mapreduce.input.pathFilter.class=x":                                       "globs",
		"mapreduce.output.basename=data":                                           "part-",
		"mapred.lazy.output.format=x":                                              "quern.output.lazy=true",
		"mapreduce.totalorderpartitioner.naturalorder=false":                       "order of keys",
		"mapreduce.multipleoutputs=a b":                                            "Job.Outputs",
		"mapred.cache.files=hdfs:///x":                                             "Job.Files",
		"mapred.map.child.env=A=b":                                                 "environment",
		"fs.default.name=hdfs://nn:8020/dir":                                       "without a path",
		"fs.defaultFS=nn:8020":                                                     "without a path",
		"fs.permissions.umask-mode=u+rwx":                                          "octal",
		"fs.permissions.umask-mode=200":                                            "owner",
		"dfs.blocksize=1000":                                                       "multiple of 512",
		"dfs.blocksize=1q":                                                         "number of bytes",
		"dfs.replication=0":                                                        "1 to 512",
		// a value that Quern has anyway
		"mapreduce.output.fileoutputformat.compress=false":                        accepted,
		"mapred.output.compress=true":                                             accepted,
		"mapred.output.compression.codec=org.apache.hadoop.io.compress.GzipCodec": accepted,
		"mapred.output.compress= false ":                                          accepted,
		"mapreduce.fileoutputcommitter.algorithm.version=1":                       accepted,
		"mapreduce.output.basename=part":                                          accepted,
		"mapreduce.job.ubertask.enable=false":                                     accepted,
		"mapreduce.input.linerecordreader.line.maxlength=2147483647":              accepted,
		// without effect, with a warning
		"mapreduce.fileoutputcommitter.algorithm.version=2": warned, "mapreduce.fileoutputcommitter.cleanup.skipped=true": warned, "dfs.client.read.shortcircuit=true": warned,
		"mapreduce.job.maps=7": warned, "mapred.map.tasks=7": warned, "mapreduce.job.speculative.retry-after-speculate=1": warned,
		"parquet.page.size=1": warned, "parquet.enable.dictionary=false": warned,
		"io.sort.factor=10": warned, "mapred.child.java.opts=-Xmx1g": warned,
		"yarn.app.mapreduce.am.resource.mb=1": warned, "mapreduce.jobhistory.address=x:1": warned, "mapreduce.odd=1": warned,
		// in effect
		"mapreduce.fileoutputcommitter.marksuccessfuljobs=false": honoured, "fs.defaultFS=file:///": honoured, "dfs.umaskmode=027": honoured,
		"dfs.replication=2": honoured, "dfs.blocksize=64m": honoured, "dfs.blocksize=": honoured, "dfs.replication=": honoured,
		"mapreduce.map.speculative=false": honoured, "mapred.reduce.tasks.speculative.execution=false": honoured,
		"mapred.map.tasks.speculative.execution=true": honoured, "mapred.speculative.execution.slowTaskThreshold=1.5": honoured,
		"mapred.speculative.execution.speculativeCap=0.2": honoured, "mapreduce.job.speculative.minimum-allowed-tasks=3": honoured,
		"mapreduce.job.reduces=3": honoured, "mapred.reduce.tasks=3": honoured, "io.sort.mb=7": honoured,
		"key.value.separator.in.input.line=;": honoured, "mapred.textoutputformat.separator=;": honoured,
		"mapred.min.split.size=9": honoured, "mapred.task.timeout=9": honoured, "mapred.job.queue.name=etl": honoured,
		"mapreduce.map.failures.maxpercent=5": honoured, "mapred.max.reduce.failures.percent=100": honoured,
		"mapred.skip.map.max.skip.records=1": honoured, "mapreduce.reduce.skip.maxgroups=9223372036854775807": honoured,
		"mapred.skip.attempts.to.start.skipping=3": honoured, "mapred.skip.out.dir=none": honoured, "mapred.skip.map.auto.incr.proc.count=false": warned,
		"mapreduce.reduce.failures.maxpercent=101": "0 to 100",
		"textinputformat.record.delimiter=;":       honoured, "mapred.linerecordreader.maxlength=100": honoured, "mapred.line.input.format.linespermap=10": honoured,
		"my.own=1": honoured, "user.name=bob": honoured,
	} {
		for how, compile := range map[string]func() (*compilation, error){
			"-D": func() (*compilation, error) { return compiledWith([]*Job{someJob("j")}, setting) },
			"-D JOB:": func() (*compilation, error) {
				return compiledWith([]*Job{someJob("i:k"), someJob("j")}, "i:k:"+setting)
			},
			"Job.Properties": func() (*compilation, error) {
				j := someJob("j")
				name, value, _ := strings.Cut(setting, "=")
				j.Properties = map[string]string{name: value}
				return compiledWith([]*Job{j, someJob("other")})
			},
		} {
			c, err := compile()
			name, value, _ := strings.Cut(setting, "=")
			if how == "-D JOB:" && property.IsFlowWide(property.CurrentName(name)) {
				continue
			}
			switch want {
			case honoured, accepted, warned:
				if err != nil {
					t.Errorf("%s %s: %v", how, setting, err)
					continue
				}
				if got := c.plans[0].Properties[property.CurrentName(name)]; got != value && got != strings.TrimSpace(value) {
					t.Errorf("%s %s: %q in the plan", how, setting, got)
				}
				if warnings := len(c.warnings); (warnings == 1) != (want == warned) || warnings > 1 {
					t.Errorf("%s %s: warnings %q", how, setting, c.warnings)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), property.CurrentName(name)) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s %s: error %v, want %q", how, setting, err, want)
			}
			if isUsage(err) != (how != "Job.Properties") {
				t.Errorf("%s %s: bad usage %v", how, setting, isUsage(err))
			}
		}
	}
}

// TestTruths: true and false may be written in any case, as in Hadoop.
func TestTruths(t *testing.T) {
	c, err := compiledWith([]*Job{someJob("j")}, "mapred.output.compress= TRUE ", "mapreduce.map.output.compress=False")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"mapreduce.output.fileoutputformat.compress": "true", "mapreduce.map.output.compress": "false"} {
		if got := c.plans[0].Properties[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestSessionNeedsSuccess: a step of a driver has _SUCCESS, which ends it.
func TestSessionNeedsSuccess(t *testing.T) {
	for value, refused := range map[string]bool{"true": false, "false": true} {
		_, err := analyse([]*Job{someJob("j")}, bridge.Settings{Inputs: []string{"in"}, Output: "out", Step: true,
			Properties: map[string]string{property.MarkSuccess: value}})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "finds the results of a session") {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// noKeys is a format of files of ranges that is never used.
type noKeys struct{ KeyFile[string] }

// TestRangesProperties: files of ranges need a job with a format of them and reduces, and are read or written.
func TestRangesProperties(t *testing.T) {
	const in, out = "mapreduce.totalorderpartitioner.path=/r", "quern.totalorder.path=/r"
	ordered := func() *Job { return Fold(wordPairs("/in").TotalOrderBy(noKeys{}), Sum).Job("j") }
	for _, c := range []struct {
		job   *Job
		given string
		want  string
	}{
		{ordered(), in + " mapreduce.job.reduces=2", ""},
		{ordered(), out + " mapreduce.job.reduces=2", ""},
		{ordered(), in + " mapreduce.job.reduces=1", "two reduces or more"},
		{Fold(wordPairs("/in").TotalOrder(), Sum).Job("j"), in + " mapreduce.job.reduces=2", "Pairs.TotalOrderBy"},
		{someJob("j"), out + " mapreduce.job.reduces=2", "quern.totalorder.path is refused"},
		{ordered(), in + " " + out + " mapreduce.job.reduces=2", "both set"},
		{Fold(wordPairs("/in").TotalOrderBy(nil), Sum).Job("j"), "mapreduce.job.reduces=2", "format of files is nil"},
	} {
		c.job.Output = "/out"
		compiled, err := compiledWith([]*Job{c.job}, strings.Fields(c.given+" fs.defaultFS=hdfs://nn")...)
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)), c.want == "" && err != nil:
			t.Errorf("%s: %v, want %q", c.given, err, c.want)
		case c.want == "":
			name, _, _ := strings.Cut(c.given, "=")
			if got := compiled.plans[0].Properties[name]; got != "hdfs://nn/r" {
				t.Errorf("%s: the file is %s", c.given, got)
			}
		}
	}
}

// TestHadoopNames: every property in Hadoop's own lists is known, and no rule refuses
// or ignores a property that Quern implements.
func TestHadoopNames(t *testing.T) {
	content, err := os.ReadFile("testdata/hadoop-default.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(content))
	if len(names) < 1300 {
		t.Errorf("%d names", len(names))
	}
	for _, current := range hadoop.Renamed() {
		names = append(names, current)
	}
	table := property.NewTable()
	for _, name := range names {
		if _, ruled := hadoop.Find(name); !ruled && table[name] == nil {
			t.Errorf("%s is not known", name)
		}
	}
	used := hadoop.Used()
	for _, name := range used {
		if _, ruled := hadoop.Find(name); !ruled && table[name] == nil || property.CurrentName(name) != name {
			t.Errorf("%s of the most used names is not known, or old", name)
		}
	}
	if slices.Sort(used); len(slices.Compact(used)) != 150 {
		t.Errorf("%d most used names", len(used))
	}
	for _, rule := range hadoop.Rules() {
		if table[rule.Name] != nil {
			t.Errorf("%s has a rule and is implemented", rule.Name)
		}
	}
}

// TestSuggestions: the message about an unknown property names the one that was probably meant.
func TestSuggestions(t *testing.T) {
	for given, want := range map[string]string{
		"mapreduce.map.skip.maxrecord":     "has no effect (did you mean mapreduce.map.skip.maxrecords?)",
		"mapreduce.map.skip.maxgroups":     "has no effect (did you mean mapreduce.map.skip.maxrecords?)",
		"mapreduce.reduce.skip.maxrecords": "has no effect (did you mean mapreduce.reduce.skip.maxgroups?)",
		"mapred.map.maxattempts":           "has no effect (did you mean mapreduce.map.maxattempts?)",
		"mapreduce.job.reducers":           "has no effect (did you mean mapreduce.job.reduces?)",
		"mapreduce.odd":                    "has no effect",
		"quern.output.sink":                "unknown property quern.output.sink (did you mean quern.output.sync?)",
		"quern.slots":                      "unknown property quern.slots (did you mean quern.embedded.slots?)",
		"quern.x":                          "unknown property quern.x",
	} {
		c, err := compiledWith([]*Job{someJob("j")}, given+"=1")
		got := fmt.Sprint(err)
		if err == nil {
			got = strings.Join(c.warnings, "; ")
		}
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}

// TestPropertiesOfOneJob: -D JOB:name=value wins over -D name=value, which wins over
// the job's own; an unknown job is refused.
func TestPropertiesOfOneJob(t *testing.T) {
	jobs := func() []*Job {
		a, b := someJob("a"), someJob("b:c")
		a.Reduces = 2
		b.Properties = map[string]string{"mapred.reduce.tasks": "3", "x": "job", "y": "job"}
		return []*Job{a, b}
	}
	for _, c := range []struct {
		given string
		want  string // reduces, x and y of both jobs
	}{
		{"", "2,, 3,job,job"},
		{"x=all", "2,all, 3,all,job"},
		{"b:c:x=one x=all", "2,all, 3,one,job"},
		{"b:c:mapred.reduce.tasks=5", "2,, 5,job,job"},
		{"mapreduce.job.reduces=4 b:c:mapreduce.job.reduces=5", "4,, 5,job,job"},
		{"a:mapreduce.job.reduces=6 mapred.reduce.tasks=4", "6,, 4,job,job"},
		{"a:x= b:c:y=1=2", "2,, 3,job,1=2"},
	} {
		compiled, err := compiledWith(jobs(), strings.Fields(c.given)...)
		if err != nil {
			t.Errorf("%s: %v", c.given, err)
			continue
		}
		a, b := compiled.plans[0].Properties, compiled.plans[1].Properties
		if got := a[property.Reduces] + "," + a["x"] + ", " + b[property.Reduces] + "," + b["x"] + "," + b["y"]; got != c.want {
			t.Errorf("%s: %s, want %s", c.given, got, c.want)
		}
	}
	for property, words := range map[string][]string{
		"c:x=1":                        {`no job "c"`, "a, b:c", "-D c:x=1"},
		":x=1":                         {`no job ""`},
		"A:x=1":                        {`no job "A"`},
		"a:=1":                         {"no name"},
		"a:mapreduce.job.reduces=many": {"a:", "many"},
		"a:quern.odd=1":                {"quern.odd"},
		"a:mapred.job.priority=HIGH":   {"all jobs of a flow"},
		"a:quern.embedded.slots=1":     {"all jobs of a flow"},
		"mapreduce.job.reduces=1 mapred.reduce.tasks=2": {"are two names of one property", "mapred.reduce.tasks=2", "mapreduce.job.reduces=1"},
	} {
		_, err := compiledWith(jobs(), strings.Fields(property)...)
		if !isUsage(err) {
			t.Errorf("%s: %v", property, err)
			continue
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %v, want %q", property, err, w)
			}
		}
	}
	j := someJob("j")
	j.Properties = map[string]string{"j:x": "1"}
	if _, err := compiledWith([]*Job{j}); err == nil || !strings.Contains(err.Error(), "colon") {
		t.Errorf("error %v", err)
	}
	if c, err := compiledWith([]*Job{someJob("j")}, "mapreduce.job.reduces=2", "mapred.reduce.tasks=2"); err != nil || c.plans[0].Reduces != 2 {
		t.Errorf("one number by two names: %v", err)
	}
}

// TestFixedReduces: a job with FixedReduces refuses another number of reduces.
func TestFixedReduces(t *testing.T) {
	jobs := func() []*Job {
		top := someJob("top")
		top.FixedReduces = 1
		return []*Job{top, someJob("other")}
	}
	for _, properties := range [][]string{nil, {"mapreduce.job.reduces=1"}, {"other:mapred.reduce.tasks=3"}, {"mapreduce.job.reduces=3", "top:mapreduce.job.reduces=1"}} {
		c, err := compiledWith(jobs(), properties...)
		if err != nil {
			t.Errorf("%q: %v", properties, err)
			continue
		}
		if i := slices.IndexFunc(c.jobs, func(j *Job) bool { return j.Name == "top" }); c.plans[i].Reduces != 1 {
			t.Errorf("%q: %d reduces", properties, c.plans[i].Reduces)
		}
	}
	for _, property := range []string{"mapreduce.job.reduces=3", "mapreduce.job.reduces=0", "mapred.reduce.tasks=2", "top:mapreduce.job.reduces=2"} {
		_, err := compiledWith(jobs(), property)
		if !isUsage(err) || !strings.Contains(err.Error(), "job top: -D mapreduce.job.reduces=") || !strings.Contains(err.Error(), "only with 1 ") || !strings.Contains(err.Error(), "-D JOB:") {
			t.Errorf("%s: %v", property, err)
		}
		if _, err := compiledWith(jobs()[:1], property); !isUsage(err) || strings.Contains(err.Error(), "JOB:") {
			t.Errorf("%s alone: %v", property, err)
		}
	}
	// mrtest's default of three does not override it.
	c, err := analyse(jobs(), bridge.Settings{Inputs: []string{"in"}, Output: "out", Defaults: map[string]string{property.Reduces: "3"}})
	if err != nil || c.plans[0].Reduces != 1 || c.plans[1].Reduces != 3 {
		t.Errorf("%v", err)
	}
	for want, edit := range map[string]func(*Job){
		"Job.Reduces and Job.FixedReduces are both set":                         func(j *Job) { j.Reduces = 1 },
		"Job.FixedReduces is -1":                                                func(j *Job) { j.FixedReduces = -1 },
		"Job.FixedReduces is 1, but Job.Properties has mapreduce.job.reduces=2": func(j *Job) { j.Properties = map[string]string{"mapred.reduce.tasks": "2"} },
		"Job.FixedReduces is 1, but MapOnly has no reduces":                     func(j *Job) { j.stage = MapOnly(wordPairs()).stage },
	} {
		all := jobs()[:1]
		edit(all[0])
		if _, err := compiledWith(all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// TestSkippingNeverStarts: a job that skips bad records needs an attempt after the failures that start
// skipping. Otherwise it is refused, wherever the properties come from.
func TestSkippingNeverStarts(t *testing.T) {
	mapOnly := func() *Job { return MapOnly(wordPairs()).Job("j") }
	for _, c := range []struct {
		job   *Job
		given string
		want  string // empty: the job is accepted
	}{
		{someJob("j"), "mapreduce.map.skip.maxrecords=1", ""},
		{someJob("j"), "mapreduce.map.skip.maxrecords=1 mapreduce.map.maxattempts=3", ""},
		{someJob("j"), "mapreduce.map.skip.maxrecords=1 mapreduce.map.maxattempts=2 mapreduce.task.skip.start.attempts=1", ""},
		{someJob("j"), "mapreduce.map.skip.maxrecords=1 mapreduce.reduce.maxattempts=1", ""},
		{someJob("j"), "mapreduce.map.skip.maxrecords=0 mapreduce.map.maxattempts=1", ""},
		{someJob("j"), "mapreduce.map.skip.maxrecords=00 mapreduce.map.maxattempts=1", ""},
		{someJob("j"), "mapreduce.map.skip.maxrecords=1 mapreduce.map.maxattempts=2",
			"mapreduce.map.maxattempts=2: must be more than mapreduce.task.skip.start.attempts=2, or mapreduce.map.skip.maxrecords=1 skips nothing"},
		{someJob("j"), "mapred.skip.map.max.skip.records=9 mapred.skip.attempts.to.start.skipping=4",
			"mapreduce.map.maxattempts=4: must be more than mapreduce.task.skip.start.attempts=4, or mapreduce.map.skip.maxrecords=9 skips nothing"},
		{someJob("j"), "mapreduce.map.skip.maxrecords=1 j:mapreduce.map.maxattempts=1", "mapreduce.map.maxattempts=1"},
		{someJob("j"), "mapreduce.reduce.skip.maxgroups=1 mapreduce.reduce.maxattempts=2",
			"mapreduce.reduce.maxattempts=2: must be more than mapreduce.task.skip.start.attempts=2, or mapreduce.reduce.skip.maxgroups=1 skips nothing"},
		{mapOnly(), "mapreduce.reduce.skip.maxgroups=1 mapreduce.reduce.maxattempts=2", ""},
		{someJob("j"), "mapreduce.reduce.skip.maxgroups=1 mapreduce.reduce.maxattempts=2 mapreduce.job.reduces=0", ""},
		{mapOnly(), "mapreduce.map.skip.maxrecords=1 mapreduce.map.maxattempts=1", "mapreduce.map.maxattempts=1"},
		{someJob("j"), "mapreduce.map.skip.maxrecords=0 quern.check=true", ""},
		{someJob("j"), "mapreduce.map.skip.maxrecords=1 quern.check=true", "quern.check=true: fails at the first bad record"},
	} {
		_, err := compiledWith([]*Job{c.job}, strings.Fields(c.given)...)
		if c.want == "" && err == nil {
			continue
		}
		if c.want == "" || !isUsage(err) || !strings.HasPrefix(err.Error(), "job j: property "+c.want) {
			t.Errorf("%s: error %v, want %q", c.given, err, c.want)
		}
	}
	j := someJob("j")
	j.Properties = map[string]string{"mapreduce.map.skip.maxrecords": "1", "mapreduce.map.maxattempts": "2"}
	if _, err := compiledWith([]*Job{j}); err == nil || isUsage(err) {
		t.Errorf("Job.Properties alone: error %v, want one that is not bad usage", err)
	}
	if _, err := compiledWith([]*Job{j}, "mapreduce.map.maxattempts=3"); err != nil {
		t.Error(err)
	}
}
