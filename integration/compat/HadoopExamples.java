import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.examples.*;
import org.apache.hadoop.examples.terasort.*;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.IntWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.LineRecordReader;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Runs Hadoop's examples with the local runner: for each line "NAME TOOL ARGUMENT...", separated by tabs, one job. Prints
 * the name and the exit code, and writes what the job prints into NAME.stdout.
 */
public class HadoopExamples {
    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split("\t");
            Configuration conf = new Configuration();
            conf.set("mapreduce.framework.name", "local");
            conf.set("hadoop.tmp.dir", Paths.get("tmp").toAbsolutePath().toString());
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
            int code;
            try {
                code = ToolRunner.run(conf, tool(words[1]), Arrays.copyOfRange(words, 2, words.length));
            } catch (Exception e) {
                printed.writeBytes((e + "\n").getBytes(StandardCharsets.UTF_8));
                code = 1;
            }
            Files.write(Paths.get(words[0] + ".stdout"), printed.toByteArray());
            out.println(words[0] + " " + code);
        }
        out.flush();
    }

    static Tool tool(String name) throws Exception {
        switch (name) {
            case "teragen": return new TeraGen();
            case "terasort": return new TeraSort();
            case "teravalidate": return new TeraValidate();
            case "terachecksum": return new TeraChecksum();
            case "pi": return new QuasiMonteCarlo();
            case "randomtextwriter": return new RandomTextWriter();
            case "wordmean": return new WordMean();
            case "sort": return new Sort<Text, Text>();
            case "join": return new Join();
            case "wordcount": return new Built(false);
            case "secondarysort": return new Built(true);
            case "grep":
                Constructor<Grep> make = Grep.class.getDeclaredConstructor();
                make.setAccessible(true);
                return make.newInstance();
            default: throw new IllegalArgumentException(name);
        }
    }

    /** Lines as keys, for Sort. */
    public static class Lines extends FileInputFormat<Text, NullWritable> {
        public RecordReader<Text, NullWritable> createRecordReader(InputSplit split, TaskAttemptContext context) {
            LineRecordReader lines = new LineRecordReader();
            return new RecordReader<Text, NullWritable>() {
                public void initialize(InputSplit s, TaskAttemptContext c) throws IOException { lines.initialize(s, c); }
                public boolean nextKeyValue() throws IOException { return lines.nextKeyValue(); }
                public Text getCurrentKey() { return lines.getCurrentValue(); }
                public NullWritable getCurrentValue() { return NullWritable.get(); }
                public float getProgress() throws IOException { return lines.getProgress(); }
                public void close() throws IOException { lines.close(); }
            };
        }
    }

    /** The jobs that WordCount and SecondarySort build in main, which would end the process. */
    static class Built extends Configured implements Tool {
        final boolean secondary;
        Built(boolean secondary) { this.secondary = secondary; }

        public int run(String[] args) throws Exception {
            Job job = Job.getInstance(getConf());
            if (secondary) {
                job.setMapperClass(SecondarySort.MapClass.class);
                job.setReducerClass(SecondarySort.Reduce.class);
                job.setPartitionerClass(SecondarySort.FirstPartitioner.class);
                job.setGroupingComparatorClass(SecondarySort.FirstGroupingComparator.class);
                job.setMapOutputKeyClass(SecondarySort.IntPair.class);
                job.setMapOutputValueClass(IntWritable.class);
            } else {
                job.setMapperClass(WordCount.TokenizerMapper.class);
                job.setCombinerClass(WordCount.IntSumReducer.class);
                job.setReducerClass(WordCount.IntSumReducer.class);
            }
            job.setOutputKeyClass(Text.class);
            job.setOutputValueClass(IntWritable.class);
            FileInputFormat.addInputPath(job, new Path(args[0]));
            FileOutputFormat.setOutputPath(job, new Path(args[1]));
            return job.waitForCompletion(false) ? 0 : 1;
        }
    }
}
