import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.*;
import org.apache.hadoop.mapreduce.Counter;
import org.apache.hadoop.mapreduce.CounterGroup;
import org.apache.hadoop.mapreduce.FileSystemCounter;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.partition.HashPartitioner;
import org.apache.hadoop.mapreduce.lib.partition.InputSampler;
import org.apache.hadoop.mapreduce.lib.partition.TotalOrderPartitioner;

/**
 * Prints what Hadoop's classes do, for the records of testdata.
 *
 * HadoopHabits jobs DIR    runs word counts of the file DIR/in, also with Quern's partition file DIR/sampled.seq, and prints their counters and files
 * HadoopHabits hdfs DIR URL USER    runs word counts of the file DIR/in in the HDFS of a URL as a user, and prints the bytes that they read and write, and their files
 * HadoopHabits hashes      prints keys of many classes with their bytes and their partitions of 1000
 */
public class HadoopHabits {
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "jobs": jobs(args[1]); break;
            case "hdfs":
                System.setProperty("HADOOP_USER_NAME", args[3]);
                hdfs(args[1], args[2]);
                break;
            case "hashes": hashes(); break;
            default: throw new IllegalArgumentException(args[0]);
        }
        out.flush();
    }

    static void jobs(String dir) throws Exception {
        run(dir, "plain", false);
        run(dir, "combined", true);
        run(dir, "reduces", true, "mapreduce.job.reduces=3");
        run(dir, "splits", true, "mapreduce.input.fileinputformat.split.maxsize=1000", "mapreduce.job.reduces=2");
        run(dir, "maponly", false, "mapreduce.job.reduces=0");
        sample(dir);
        run(dir, "ranges", true, "mapreduce.job.reduces=3", "mapreduce.totalorderpartitioner.path=ranges.seq");
        run(dir, "sampled", true, "mapreduce.job.reduces=3", "mapreduce.totalorderpartitioner.path=sampled.seq");
        run(dir, "files", true, "fs.permissions.umask-mode=027", "mapreduce.fileoutputcommitter.marksuccessfuljobs=false", "mapreduce.output.textoutputformat.separator==", "mapreduce.output.fileoutputformat.compress=true");
    }

    /** Runs a job, and prints its counters except times and memory, and the names, permissions and sizes of its files. */
    static void run(String dir, String name, boolean combine, String... properties) throws Exception {
        Configuration conf = LocalJobs.conf(dir, properties);
        FileSystem.closeAll(); // those with the properties of another job
        FileSystem.getLocal(conf).setWriteChecksum(false); // Hadoop counts the bytes of checksums too
        String ranges = conf.get(TotalOrderPartitioner.PARTITIONER_PATH);
        if (ranges != null) conf.set(TotalOrderPartitioner.PARTITIONER_PATH, "file://" + dir + "/" + ranges);
        Job job = Job.getInstance(conf, name);
        if (ranges != null) job.setPartitionerClass(TotalOrderPartitioner.class);
        job.setMapperClass(LocalJobs.Words.class);
        if (combine) job.setCombinerClass(LocalJobs.Sum.class);
        job.setReducerClass(LocalJobs.Sum.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(LongWritable.class);
        Path output = new Path("file://" + dir + "/" + name);
        FileInputFormat.addInputPath(job, new Path("file://" + dir + "/in"));
        FileOutputFormat.setOutputPath(job, output);
        if (!job.waitForCompletion(false)) throw new IOException(name + " failed");
        out.println("job " + name + " " + combine + " " + String.join(" ", properties));
        TreeMap<String, Long> counters = new TreeMap<>();
        for (CounterGroup group : job.getCounters()) {
            for (Counter c : group) counters.put(group.getName() + " " + c.getName(), c.getValue());
        }
        counters.keySet().removeIf(c -> c.contains("FileSystemCounter") || c.matches(".*(MILLIS|MILLISECONDS|MEMORY_BYTES|HEAP_BYTES|_MAX)$"));
        long paths = 0; // bytes of the paths in the descriptions of splits
        for (InputSplit split : new TextInputFormat().getSplits(job)) paths += ((FileSplit) split).getPath().toString().length();
        counters.merge("org.apache.hadoop.mapreduce.TaskCounter SPLIT_RAW_BYTES", -paths, Long::sum);
        counters.forEach((c, n) -> out.println("counter " + c + " " + n));
        TreeSet<String> files = new TreeSet<>();
        for (FileStatus f : output.getFileSystem(conf).listStatus(output)) files.add("file " + f.getPath().getName() + " " + f.getPermission() + " " + f.getLen());
        files.forEach(out::println);
    }

    static void hdfs(String dir, String url) throws Exception {
        FileSystem hdfs = FileSystem.get(URI.create(url), new Configuration());
        for (String name : new String[] {"a", "b"}) hdfs.copyFromLocalFile(new Path("file://" + dir + "/in"), new Path(url + "/in/" + name));
        overHDFS(dir, url, "plain", "mapreduce.job.reduces=2");
        overHDFS(dir, url, "settings", "mapreduce.job.reduces=2", "dfs.replication=1", "dfs.blocksize=8192", "fs.permissions.umask-mode=027");
        overHDFS(dir, url, "old", "dfs.replication=3", "dfs.block.size=64k", "dfs.umaskmode=u=rwx,g=x,o=");
        overHDFS(dir, url, "maponly", "mapreduce.job.reduces=0", "mapreduce.fileoutputcommitter.marksuccessfuljobs=false", "mapreduce.input.fileinputformat.split.maxsize=2824");
    }

    /**
     * Runs a job over HDFS. The local runner adds up the statistics of its process after each task, so that its counters have bytes
     * several times. The statistics after the job are what the counters of tasks in processes of their own add up to.
     */
    static void overHDFS(String dir, String url, String name, String... properties) throws Exception {
        Configuration conf = LocalJobs.conf(dir, properties);
        conf.set("fs.defaultFS", "file:///"); // where splits are written
        FileSystem.closeAll(); // those with the properties of another job
        FileSystem.clearStatistics();
        Job job = Job.getInstance(conf, name);
        job.setMapperClass(LocalJobs.Words.class);
        job.setCombinerClass(LocalJobs.Sum.class);
        job.setReducerClass(LocalJobs.Sum.class);
        job.setOutputKeyClass(Text.class);
        job.setOutputValueClass(LongWritable.class);
        Path top = new Path(url + "/" + name), output = new Path(top, "below/out");
        FileInputFormat.addInputPath(job, new Path(url + "/in"));
        FileOutputFormat.setOutputPath(job, output);
        if (!job.waitForCompletion(false)) throw new IOException(name + " failed");
        out.println("job " + name + " true " + String.join(" ", properties));
        for (String counter : new String[] {"BYTES_READ", "BYTES_WRITTEN"}) {
            Counter c = job.getCounters().findCounter("hdfs", FileSystemCounter.valueOf(counter));
            if (c.getName().equals("HDFS_" + counter)) {
                long n = FileSystem.getGlobalStorageStatistics().get("hdfs").getLong(counter.equals("BYTES_READ") ? "bytesRead" : "bytesWritten");
                out.println("counter " + FileSystemCounter.class.getName() + " " + c.getName() + " " + n);
            }
        }
        list(top.getFileSystem(conf), top, url);
    }

    /** Prints a directory and everything in it. */
    static void list(FileSystem files, Path path, String url) throws IOException {
        FileStatus s = files.getFileStatus(path);
        String found = s.getPath().toString().substring(url.length()) + " " + s.getPermission();
        if (s.isFile()) {
            out.println("file " + found + " " + s.getLen() + " " + s.getReplication() + " " + s.getBlockSize());
            return;
        }
        out.println("directory " + found);
        for (FileStatus entry : files.listStatus(path)) list(files, entry.getPath(), url);
    }

    /** Writes the partition file ranges.seq from a sample of lines, and replaces its random sync mark. */
    static void sample(String dir) throws Exception {
        Path file = new Path("file://" + dir + "/ranges.seq");
        Job job = Job.getInstance(new Configuration());
        FileSystem.closeAll();
        FileSystem.getLocal(job.getConfiguration()).setWriteChecksum(false);
        FileInputFormat.addInputPath(job, new Path("file://" + dir + "/in"));
        job.setInputFormatClass(KeyValueTextInputFormat.class);
        job.setMapOutputKeyClass(Text.class);
        job.setNumReduceTasks(3);
        TotalOrderPartitioner.setPartitionFile(job.getConfiguration(), file);
        InputSampler.writePartitionFile(job, new InputSampler.SplitSampler<Text, Text>(1000));
        LocalJobs.replaceMark(dir + "/ranges.seq");
    }

    static void put(Writable key) throws IOException {
        out.println(key.getClass().getSimpleName() + " x" + LocalJobs.hex(key) + " " + new HashPartitioner<Writable, Writable>().getPartition(key, NullWritable.get(), 1000));
    }

    static void hashes() throws IOException {
        put(NullWritable.get());
        for (int i : new int[] {0, 1, -1, 7, 300, -129, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            put(new IntWritable(i));
            put(new VIntWritable(i));
            put(new LongWritable(i * 4294967311L));
            put(new VLongWritable(i * 4294967311L));
            put(new ByteWritable((byte) i));
            put(new ShortWritable((short) i));
            put(new FloatWritable(i / 8f));
            put(new DoubleWritable(i / 8.0));
            put(new BooleanWritable(i % 2 == 0));
            put(new Text("key " + i + " \u00e4"));
            put(new BytesWritable(("bytes" + i).getBytes(StandardCharsets.UTF_8)));
        }
    }
}
