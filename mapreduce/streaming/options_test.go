package streaming

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRefused: what cannot be meant is refused by name before the job is submitted.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		options string
		want    []string
	}{
		{"-mapper org.apache.hadoop.mapred.lib.RegexMapper", []string{"-mapper org.apache.hadoop.mapred.lib.RegexMapper", "IdentityMapper"}},
		{"-mapper cat -reducer org.apache.hadoop.mapred.lib.LongSumReducer", []string{"-reducer org.apache.hadoop.mapred.lib.LongSumReducer", "IdentityReducer, aggregate"}},
		{"-mapper cat -combiner org.apache.hadoop.mapred.lib.LongSumReducer", []string{"-combiner org.apache.hadoop.mapred.lib.LongSumReducer", "IdentityReducer, aggregate"}},
		{"-mapper cat -inputformat DBInputFormat", []string{"-inputformat DBInputFormat", "TextInputFormat, KeyValueTextInputFormat, NLineInputFormat"}},
		{"-mapper cat -inputformat org.apache.hadoop.mapreduce.lib.input.CombineTextInputFormat", []string{"-inputformat org.apache.hadoop.mapreduce.lib.input.CombineTextInputFormat", "NLineInputFormat, CombineTextInputFormat"}},
		{"-mapper cat -inputformat org.apache.hadoop.mapred.lib.CombineTextInputFormat -jobconf mapred.min.split.size.per.node=5", []string{"mapred.min.split.size.per.node=5", "split.maxsize"}},
		{"-mapper cat -outputformat com.example.Mine", []string{"-outputformat com.example.Mine", "TextOutputFormat"}},
		{"-mapper cat -partitioner com.example.Mine", []string{"-partitioner com.example.Mine", "HashPartitioner, KeyFieldBasedPartitioner"}},
		{"-jobconf mapred.output.key.comparator.class=com.example.Mine -mapper cat", []string{"com.example.Mine", "KeyFieldBasedComparator"}},
		{"-mapper cat -mapper tac", []string{"-mapper", "cat", "tac", "twice"}},
		{"-mapper cat -output other", []string{"-output", "twice"}},
		{"-mapper cat -numReduceTasks 1 -numReduceTasks 2", []string{"-numReduceTasks", "twice"}},
		{"-mapper cat -numReduceTasks -1", []string{"-numReduceTasks -1", "from 0"}},
		{"-mapper cat -file none.py", []string{"file none.py to ship", "/dir/none.py"}},
		{"-mapper cat -io text -io typedbytes", []string{"-io", "text", "typedbytes", "twice"}},
		{"-mapper cat -inputreader com.example.Mine,begin=a,end=b", []string{"-inputreader com.example.Mine", "StreamXmlRecordReader"}},
		{"-mapper cat -inputreader StreamXmlRecordReader,begin=a", []string{"begin and end are required"}},
		{"-mapper cat -inputreader StreamXmlRecordReader,begin=a,end=", []string{"begin and end are required"}},
		{"-mapper cat -inputreader StreamXmlRecordReader,begin=a,end=b,maxrec=many", []string{"maxrec=many"}},
		{"-mapper cat -inputreader StreamXmlRecordReader,begin=a,end=b,lookahead=-1", []string{"lookahead=-1"}},
		{"-mapper cat -inputreader StreamXmlRecordReader,begin=a,end=(b,slowmatch=true", []string{"-inputreader", "(b"}},
		{"-mapper cat -inputreader StreamXmlRecordReader,begin=a*,end=b,slowmatch=true", []string{`"a*" matches the empty text`}},
		{"-jobconf stream.map.output=rawbytes -mapper cat -reducer cat -combiner cat", []string{"-combiner cat", "stream.reduce.output", "BytesWritable"}},
		{"-jobconf stream.map.output=rawbytes -mapper cat -reducer aggregate", []string{"aggregate", "BytesWritable"}},
		{"-io typedbytes -mapper cat -jobconf mapreduce.job.output.key.comparator.class=org.apache.hadoop.mapred.lib.KeyFieldBasedComparator", []string{"KeyFieldBasedComparator orders text"}},
		{"-mapper cat -jobconf mapreduce.job.output.key.comparator.class=org.apache.hadoop.mapred.lib.KeyFieldBasedComparator -jobconf mapreduce.partition.keycomparator.options=-k2.9223372036854775807", []string{"-k2.9223372036854775807", "FIELD[.BYTE]"}},
		{"-mapper ' '", []string{"-mapper: the command is empty"}},
		{"-jobconf stream.num.map.output.key.fields=two -mapper cat", []string{`stream.num.map.output.key.fields="two"`}},
		{"-jobconf stream.num.reduce.output.key.fields=-2 -mapper cat", []string{`stream.num.reduce.output.key.fields="-2"`}},
		{"-jobconf stream.minRecWrittenToEnableSkip_=few -mapper cat", []string{`stream.minRecWrittenToEnableSkip_="few"`}},
		{"-jobconf mapreduce.job.counters.counter.name.max=few -mapper cat", []string{`mapreduce.job.counters.counter.name.max="few"`}},
		{"-jobconf stream.jobconf.truncate.limit=few -mapper cat", []string{`stream.jobconf.truncate.limit="few"`}},
		{"-jobconf stream.non.zero.exit.is.failure=no -mapper cat", []string{`stream.non.zero.exit.is.failure="no"`, "true or false"}},
		{"-jobconf stream.map.input.ignoreKey=1 -mapper cat", []string{`stream.map.input.ignoreKey="1"`, "true or false"}},
		{"-mapper cat -inputreader StreamXmlRecordReader,begin=a,end=b,slowmatch=yes", []string{"slowmatch=yes must be true or false"}},
		{"-jobconf stream.io.identifier.resolver.class=com.example.Mine -mapper cat", []string{"stream.io.identifier.resolver.class=com.example.Mine is refused", "-io"}},
		{"-mapper cat -file /#tmp", []string{"file /: tmp is the temporary directory", "/#NAME"}},
		{"-mapper cat -cacheArchive hdfs://nn/tmp.zip#tmp", []string{"file hdfs://nn/tmp.zip: tmp is the temporary directory"}},
		{"-mapper cat -jobconf mapreduce.job.cache.archives=hdfs://nn/a.zip#tmp", []string{"mapreduce.job.cache.archives", "tmp is the temporary directory"}},
		{"-mappr cat", []string{"-mappr", "-mapper"}},
	} {
		command, err := Parse(append([]string{"-input", "in", "-output", "out"}, words(c.options)...), "/dir")
		if err == nil {
			_, _, err = command.Job.Submission(nil, "/dir")
		}
		if err == nil {
			t.Errorf("%s: no error", c.options)
			continue
		}
		for _, text := range c.want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: no %q in: %v", c.options, text, err)
			}
		}
	}
}

// TestUnused: Hadoop lets one option win over another in silence; a warning says so.
func TestUnused(t *testing.T) {
	for options, want := range map[string]string{
		"-mapper cat -reducer NONE -numReduceTasks 2":         "property mapreduce.job.reduces=2 has no effect: -reducer NONE wins",
		"-mapper cat -numReduceTasks 0 -reducer tac":          "-reducer tac has no effect: the job has no reduces",
		"-mapper cat -reducer NONE -combiner 'uniq -c'":       "-combiner uniq -c has no effect: the job has no reduces",
		"-mapper cat -reducer NONE -numReduceTasks 0":         "",
		"-mapper cat -jobconf stream.joindelay.milli=5":       "property stream.joindelay.milli is not known to Quern: only commands see it, in their environment",
		"-mapper cat -jobconf stream.map.input.ignoreKy=true": "property stream.map.input.ignoreKy is not known to Quern: only commands see it, in their environment (did you mean stream.map.input.ignoreKey?)",
		"-mapper cat -jobconf stream.io.identifier.resolver.class=org.apache.hadoop.streaming.io.IdentifierResolver -jobconf stream.map.input=text": "",
	} {
		command, err := Parse(append([]string{"-input", "in", "-output", "out"}, words(options)...), "/dir")
		if err != nil {
			t.Fatal(err)
		}
		_, warnings, err := command.Job.Submission(nil, "/dir")
		if got := strings.Join(warnings, "\n"); err != nil || got != want {
			t.Errorf("%s: %v, %q; want %q", options, err, got, want)
		}
	}
}

// TestConfiguration: -D wins over files wherever it is, later files win over earlier ones except over final properties,
// and variables stand for properties under all their names.
func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.xml": `<configuration>
			<property><name>package</name><value>org.apache</value></property>
			<property><name>mapred.output.compression.codec</name><value>${package}.GzipCodec</value></property>
			<property><name>mapred.reduce.tasks</name><value>3</value><final>true</final></property>
			<property><name>io.sort.mb</name><value>64</value></property></configuration>`,
		"b.xml": `<configuration>
			<property><name>mapreduce.job.reduces</name><value>4</value></property>
			<property><name>mapreduce.task.io.sort.mb</name><value>${mapred.reduce.tasks}2</value></property></configuration>`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	codec, reduces, memory := "mapreduce.output.fileoutputformat.compress.codec", "mapreduce.job.reduces", "mapreduce.task.io.sort.mb"
	for options, want := range map[string]struct {
		properties map[string]string
		notes      []string
	}{
		"-conf a.xml":                              {map[string]string{"package": "org.apache", codec: "org.apache.GzipCodec", reduces: "3", memory: "64"}, nil},
		"-D package=com -conf a.xml":               {map[string]string{"package": "com", codec: "com.GzipCodec", reduces: "3", memory: "64"}, nil},
		"-D mapreduce.job.reduces=5 -conf b.xml":   {map[string]string{reduces: "5", memory: "52"}, nil},
		"-conf b.xml -D mapred.reduce.tasks=5":     {map[string]string{"mapred.reduce.tasks": "5", memory: "52"}, nil},
		"-conf a.xml -conf b.xml -D package=${no}": {map[string]string{"package": "${no}", codec: "${no}.GzipCodec", reduces: "3", memory: "32"}, []string{"property mapreduce.job.reduces of b.xml has no effect: it is final in a.xml"}},
	} {
		command, err := Parse(append(strings.Fields(options), "-input", "in", "-output", "out", "-mapper", "cat"), dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := command.Job.Properties; !maps.Equal(got, want.properties) || !slices.Equal(command.Notes, want.notes) {
			t.Errorf("%s: %q, %q\nwant %q", options, got, command.Notes, want)
		}
	}
}
