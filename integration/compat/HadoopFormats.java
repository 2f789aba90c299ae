import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.mapred.AvroKey;
import org.apache.avro.mapreduce.AvroJob;
import org.apache.avro.mapreduce.AvroKeyInputFormat;
import org.apache.avro.mapreduce.AvroKeyOutputFormat;
import org.apache.avro.mapreduce.AvroKeyValueOutputFormat;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.BZip2Codec;
import org.apache.hadoop.mapreduce.Job;
import org.apache.hadoop.mapreduce.Mapper;
import org.apache.hadoop.mapreduce.Reducer;
import org.apache.hadoop.mapreduce.lib.input.FileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat;
import org.apache.hadoop.mapreduce.lib.output.FileOutputFormat;
import org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * Runs word counts and sorts of SequenceFiles and Avro files with Hadoop's local runner, for the records of testdata.
 *
 * HadoopFormats sequence DIR    writes the lines of DIR/in into DIR/in.seq, each with a number; runs jobs over it, and prints the records of their files
 * HadoopFormats avro DIR        the same with DIR/in.avro, which has only the lines
 */
public class HadoopFormats {
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final Schema STRING = Schema.create(Schema.Type.STRING);
    static String dir;

    public static void main(String[] args) throws Exception {
        dir = args[1];
        List<String> lines = Files.readAllLines(Paths.get(dir, "in"));
        boolean sequence = args[0].equals("sequence");
        if (sequence) writeSequence(lines);
        else writeAvro(lines);
        String compress = "mapreduce.output.fileoutputformat.compress";
        for (String job : List.of("words", "sort")) {
            run(sequence, job, "mapreduce.job.reduces=1");
            if (sequence) {
                run(true, job, "mapreduce.job.reduces=2", compress + "=true", compress + ".type=RECORD");
                run(true, job, "mapreduce.job.reduces=7", compress + "=true", compress + ".type=BLOCK", compress + ".codec=" + BZip2Codec.class.getName());
            } else {
                run(false, job, "mapreduce.job.reduces=2", compress + "=true");
                run(false, job, "mapreduce.job.reduces=7", compress + "=true", "avro.output.codec=snappy");
            }
        }
        out.flush();
    }

    /** The number of a line: each one is different, and some are negative. */
    static long number(int line) { return line * 7919L % 1009 - 500; }

    static void writeSequence(List<String> lines) throws Exception {
        try (SequenceFile.Writer w = SequenceFile.createWriter(new Configuration(), SequenceFile.Writer.file(new Path("file://" + dir + "/in.seq")), SequenceFile.Writer.keyClass(LongWritable.class),
                SequenceFile.Writer.valueClass(Text.class), SequenceFile.Writer.compression(SequenceFile.CompressionType.BLOCK))) {
            for (int i = 0; i < lines.size(); i++) w.append(new LongWritable(number(i)), new Text(lines.get(i)));
        }
        LocalJobs.replaceMark(dir + "/in.seq");
    }

    static void writeAvro(List<String> lines) throws IOException {
        try (DataFileWriter<CharSequence> w = new DataFileWriter<>(new GenericDatumWriter<>(STRING))) {
            w.setCodec(CodecFactory.deflateCodec(6)).setSyncInterval(500);
            w.create(STRING, Files.newOutputStream(Paths.get(dir, "in.avro")), "sync-sync-sync-s".getBytes());
            for (String line : lines) w.append(line);
        }
    }

    public static class AvroWords extends Mapper<AvroKey<CharSequence>, NullWritable, Text, LongWritable> {
        @Override public void map(AvroKey<CharSequence> line, NullWritable none, Context context) throws IOException, InterruptedException { LocalJobs.words(line.datum().toString(), context); }
    }

    public static class AvroLines extends Mapper<AvroKey<CharSequence>, NullWritable, Text, NullWritable> {
        @Override public void map(AvroKey<CharSequence> line, NullWritable none, Context context) throws IOException, InterruptedException { context.write(new Text(line.datum().toString()), none); }
    }

    public static class ToAvro extends Reducer<Text, NullWritable, AvroKey<CharSequence>, NullWritable> {
        @Override public void reduce(Text line, Iterable<NullWritable> times, Context context) throws IOException, InterruptedException {
            for (NullWritable time : times) context.write(new AvroKey<>(line.toString()), time);
        }
    }

    static void run(boolean sequence, String name, String... properties) throws Exception {
        Job job = Job.getInstance(LocalJobs.conf(dir, properties), name);
        Path output = new Path("file://" + dir + "/" + (sequence ? "sequence-" : "avro-") + name + "-" + job.getNumReduceTasks());
        FileInputFormat.addInputPath(job, new Path("file://" + dir + (sequence ? "/in.seq" : "/in.avro")));
        FileOutputFormat.setOutputPath(job, output);
        if (sequence) sequence(job, name.equals("words"));
        else avro(job, name.equals("words"));
        if (!job.waitForCompletion(false)) throw new IOException(name + " failed");
        out.println("job " + name + " " + String.join(" ", properties));
        File[] files = new File(output.toUri().getPath()).listFiles((d, file) -> file.startsWith("part-"));
        Arrays.sort(files);
        for (File f : files) {
            if (sequence) printSequence(f);
            else printAvro(f);
        }
    }

    static void sequence(Job job, boolean words) {
        job.setInputFormatClass(SequenceFileInputFormat.class);
        job.setOutputFormatClass(SequenceFileOutputFormat.class);
        job.setOutputKeyClass(words ? Text.class : LongWritable.class);
        job.setOutputValueClass(words ? LongWritable.class : Text.class);
        if (words) {
            job.setMapperClass(LocalJobs.Words.class);
            job.setCombinerClass(LocalJobs.Sum.class);
            job.setReducerClass(LocalJobs.Sum.class);
        }
    }

    static void avro(Job job, boolean words) {
        job.setInputFormatClass(AvroKeyInputFormat.class);
        AvroJob.setInputKeySchema(job, STRING);
        job.setMapOutputKeyClass(Text.class);
        if (words) {
            job.setOutputFormatClass(AvroKeyValueOutputFormat.class);
            job.setMapperClass(AvroWords.class);
            job.setCombinerClass(LocalJobs.Sum.class);
            job.setReducerClass(LocalJobs.Sum.class);
            job.setOutputKeyClass(Text.class);
            job.setOutputValueClass(LongWritable.class);
        } else {
            job.setOutputFormatClass(AvroKeyOutputFormat.class);
            job.setMapperClass(AvroLines.class);
            job.setReducerClass(ToAvro.class);
            job.setMapOutputValueClass(NullWritable.class);
            AvroJob.setOutputKeySchema(job, STRING);
        }
    }

    static void printSequence(File file) throws IOException {
        Configuration conf = new Configuration();
        try (SequenceFile.Reader r = new SequenceFile.Reader(conf, SequenceFile.Reader.file(new Path("file://" + file)))) {
            out.println("file " + file.getName() + " " + r.getKeyClassName() + " " + r.getValueClassName() + " " + r.getCompressionType() + " " + (r.getCompressionCodec() == null ? "-" : r.getCompressionCodec().getClass().getName()));
            Writable key = (Writable) ReflectionUtils.newInstance(r.getKeyClass(), conf), value = (Writable) ReflectionUtils.newInstance(r.getValueClass(), conf);
            while (r.next(key, value)) out.println("x" + LocalJobs.hex(key) + " x" + LocalJobs.hex(value));
        }
    }

    static void printAvro(File file) throws IOException {
        try (DataFileReader<Object> r = new DataFileReader<>(file, new GenericDatumReader<>())) {
            String codec = r.getMetaString("avro.codec");
            out.println("file " + file.getName() + " " + r.getSchema().getFullName() + " " + (codec == null ? "null" : codec));
            while (r.hasNext()) {
                ByteArrayOutputStream bytes = new ByteArrayOutputStream();
                BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
                new GenericDatumWriter<>(r.getSchema()).write(r.next(), encoder);
                encoder.flush();
                out.println("x" + LocalJobs.hex(bytes.toByteArray()));
            }
        }
    }
}
