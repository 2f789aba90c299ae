import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.StringTokenizer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;

/** Parts of the jobs of HadoopHabits and HadoopFormats. */
class LocalJobs {
    public static class Words extends Mapper<LongWritable, Text, Text, LongWritable> {
        @Override public void map(LongWritable at, Text line, Context context) throws IOException, InterruptedException { words(line.toString(), context); }
    }

    static void words(String line, Mapper<?, ?, Text, LongWritable>.Context context) throws IOException, InterruptedException {
        for (StringTokenizer words = new StringTokenizer(line); words.hasMoreTokens(); ) context.write(new Text(words.nextToken()), new LongWritable(1));
    }

    public static class Sum extends Reducer<Text, LongWritable, Text, LongWritable> {
        @Override public void reduce(Text word, Iterable<LongWritable> ones, Context context) throws IOException, InterruptedException {
            long sum = 0;
            for (LongWritable one : ones) sum += one.get();
            context.write(word, new LongWritable(sum));
        }
    }

    /** The configuration of a job with properties NAME=VALUE. */
    static Configuration conf(String dir, String... properties) {
        Configuration conf = new Configuration();
        conf.set("mapreduce.framework.name", "local");
        conf.set("hadoop.tmp.dir", dir + "/tmp");
        for (String p : properties) conf.set(p.substring(0, p.indexOf('=')), p.substring(p.indexOf('=') + 1));
        return conf;
    }

    /** Replaces the random sync mark of a SequenceFile. */
    static void replaceMark(String file) throws Exception {
        java.nio.file.Path path = Paths.get(file);
        byte[] mark;
        try (SequenceFile.Reader reader = new SequenceFile.Reader(new Configuration(), SequenceFile.Reader.file(new Path("file://" + file)))) {
            Field field = SequenceFile.Reader.class.getDeclaredField("sync");
            field.setAccessible(true);
            mark = (byte[]) field.get(reader);
        }
        byte[] content = Files.readAllBytes(path);
        for (int i = 0; i + mark.length <= content.length; i++) {
            if (Arrays.equals(content, i, i + mark.length, mark, 0, mark.length)) System.arraycopy("sync-sync-sync-s".getBytes(), 0, content, i, mark.length);
        }
        Files.write(path, content);
        Files.deleteIfExists(path.resolveSibling("." + path.getFileName() + ".crc"));
    }

    static String hex(Writable w) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        w.write(new DataOutputStream(bytes));
        return hex(bytes.toByteArray());
    }

    static String hex(byte[] bytes) {
        StringBuilder b = new StringBuilder();
        for (byte x : bytes) b.append(String.format("%02x", x));
        return b.toString();
    }
}
