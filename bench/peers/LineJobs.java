import java.io.IOException;
import java.util.regex.Pattern;

import org.apache.hadoop.conf.Configured;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.partition.InputSampler;
import org.apache.hadoop.mapreduce.lib.partition.TotalOrderPartitioner;
import org.apache.hadoop.util.Tool;
import org.apache.hadoop.util.ToolRunner;

/**
 * Jobs for Hadoop whose input lines have no tabs, so that each line is a key.
 * LineJobs sort INPUT OUTPUT TEMPORARY writes the lines in order, in as many part files as mapreduce.job.reduces says.
 * LineJobs grep INPUT OUTPUT EXPRESSION writes the lines that match.
 */
public class LineJobs extends Configured implements Tool {
    public static class Lines extends Mapper<Text, Text, Text, NullWritable> {
        private Pattern wanted; // null: all lines

        @Override
        protected void setup(Context context) {
            String expression = context.getConfiguration().get("lines.wanted");
            wanted = expression == null ? null : Pattern.compile(expression);
        }

        @Override
        protected void map(Text line, Text none, Context context) throws IOException, InterruptedException {
            if (wanted == null || wanted.matcher(line.toString()).find()) {
                context.write(line, NullWritable.get());
            }
        }
    }

    @Override
    public int run(String[] args) throws Exception {
        boolean sorts = args[0].equals("sort");
        if (!sorts) {
            getConf().set("lines.wanted", args[3]);
        }
        Job job = Job.getInstance(getConf(), args[0]);
        job.setJarByClass(LineJobs.class);
        job.setInputFormatClass(KeyValueTextInputFormat.class);
        job.setMapperClass(Lines.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(NullWritable.class);
        FileInputFormat.addInputPath(job, new Path(args[1]));
        FileOutputFormat.setOutputPath(job, new Path(args[2]));
        if (sorts) {
            // Reduces share one heap. Together they hold as much map output in it as a single one does by default.
            job.getConfiguration().setFloat("mapreduce.reduce.shuffle.input.buffer.percent", 0.7f / job.getNumReduceTasks());
            job.setPartitionerClass(TotalOrderPartitioner.class);
            TotalOrderPartitioner.setPartitionFile(job.getConfiguration(), new Path(args[3], "partitions"));
            InputSampler.writePartitionFile(job, new InputSampler.RandomSampler<Text, Text>(0.01, 10000, 10));
        } else {
            job.setNumReduceTasks(0);
        }
        return job.waitForCompletion(false) ? 0 : 1;
    }

    public static void main(String[] args) throws Exception {
        System.exit(ToolRunner.run(new LineJobs(), args));
    }
}
