import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.io.*;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.compress.*;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.SequenceFileInputFormat;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * Writes and reads files with Hadoop's classes.
 *
 * HadoopFiles codecs DIR       writes files of each codec
 * HadoopFiles sequences DIR    writes SequenceFiles, and prints their records
 * HadoopFiles values           prints values of each Writable class with their bytes
 * HadoopFiles read             for each line "codec PATH" or "sequence PATH" prints the path, and the digest of the content
 * HadoopFiles splits           for each line "text PATH SIZE" or "sequence PATH SIZE" prints the splits' numbers of records and digests
 */
public class HadoopFiles {
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final Configuration conf = new Configuration();
    static RawLocalFileSystem files;

    public static void main(String[] args) throws Exception {
        conf.set("fs.file.impl", RawLocalFileSystem.class.getName()); // without files of checksums
        conf.setBoolean("fs.file.impl.disable.cache", true);
        files = (RawLocalFileSystem) new Path("file:///").getFileSystem(conf);
        switch (args[0]) {
            case "codecs": codecs(args[1]); break;
            case "sequences": sequences(args[1]); break;
            case "values": values(); break;
            case "read": read(); break;
            case "splits": splits(); break;
            default: throw new IllegalArgumentException(args[0]);
        }
        out.flush();
    }

    /** The codecs that need no native code, by the suffixes of their files. */
    static Map<String, CompressionCodec> all() {
        Map<String, CompressionCodec> all = new LinkedHashMap<>();
        for (Class<? extends CompressionCodec> c : List.of(BZip2Codec.class, DefaultCodec.class, GzipCodec.class, Lz4Codec.class, SnappyCodec.class)) {
            CompressionCodec codec = ReflectionUtils.newInstance(c, conf);
            all.put(codec.getDefaultExtension().substring(1), codec);
        }
        return all;
    }

    /** Lines of digits that repeat. */
    static byte[] lines(int size) {
        StringBuilder b = new StringBuilder();
        for (long i = 0; b.length() < size; i++) b.append("line ").append(i * i % 97).append('\n');
        return b.substring(0, size).getBytes(StandardCharsets.UTF_8);
    }

    static void codecs(String dir) throws IOException {
        for (Map.Entry<String, CompressionCodec> e : all().entrySet()) {
            String suffix = "." + e.getKey();
            write(dir + "/empty" + suffix, e.getValue(), new byte[0], 1000);
            write(dir + "/lines" + suffix, e.getValue(), lines(5000), 1000);
            write(dir + "/long" + suffix, e.getValue(), lines(suffix.equals(".bz2") ? 2_000_000 : 600_000), 1000);
            if (suffix.equals(".lz4") || suffix.equals(".snappy")) write(dir + "/onewrite" + suffix, e.getValue(), lines(600_000), 600_000);
        }
    }

    static void write(String name, CompressionCodec codec, byte[] content, int step) throws IOException {
        try (OutputStream to = codec.createOutputStream(Files.newOutputStream(Paths.get(name)))) {
            for (int i = 0; i < content.length; i += step) to.write(content, i, Math.min(step, content.length - i));
        }
    }

    public static class Ints extends ArrayWritable {
        public Ints() { super(IntWritable.class); }
        public Ints(int... v) {
            super(IntWritable.class, Arrays.stream(v).mapToObj(IntWritable::new).toArray(IntWritable[]::new));
        }
    }

    static String hex(byte[] b) {
        StringBuilder s = new StringBuilder();
        for (byte x : b) s.append(String.format("%02x", x));
        return s.toString();
    }

    static byte[] bytes(Writable w) throws IOException {
        ByteArrayOutputStream b = new ByteArrayOutputStream();
        w.write(new DataOutputStream(b));
        return b.toByteArray();
    }

    static MapWritable map(Writable... keysAndValues) {
        MapWritable m = new MapWritable();
        for (int i = 0; i < keysAndValues.length; i += 2) m.put(keysAndValues[i], keysAndValues[i + 1]);
        return m;
    }

    /** Prints class, value and bytes. Values of texts and bytes are in hex, those of maps and arrays in parts. */
    static void values() throws IOException {
        long[] numbers = {0, 1, -1, 127, 128, -112, -113, 255, 256, -256, -257, 65535, 1 << 24, Integer.MAX_VALUE, Integer.MIN_VALUE, 1L << 40, -(1L << 40), Long.MAX_VALUE, Long.MIN_VALUE};
        for (long n : numbers) {
            value(n, new LongWritable(n));
            value(n, new VLongWritable(n));
            if ((int) n == n) value(n, new IntWritable((int) n));
            if ((int) n == n) value(n, new VIntWritable((int) n));
            if ((short) n == n) value(n, new ShortWritable((short) n));
            if ((byte) n == n) value(n, new ByteWritable((byte) n));
        }
        for (double d : new double[] {0.0, -0.0, 1.5, -1e300, Double.MIN_VALUE, Double.NaN, Double.POSITIVE_INFINITY}) value(d, new DoubleWritable(d));
        for (float f : new float[] {0f, -0f, 1.5f, Float.MAX_VALUE, Float.NaN, Float.NEGATIVE_INFINITY}) value(f, new FloatWritable(f));
        value(true, new BooleanWritable(true));
        value(false, new BooleanWritable(false));
        value("-", NullWritable.get());
        for (int size : new int[] {0, 1, 5, 127, 128, 300}) {
            byte[] b = lines(size);
            value("x" + hex(b), new Text(b));
            value("x" + hex(b), new BytesWritable(b));
        }
        value("1,-1,300", new Ints(1, -1, 300));
        value("", new Ints(new int[0]));
        value("x61=LongWritable:1", map(new Text("a"), new LongWritable(1)));
        value("", map());
        Writable[] each = {new BooleanWritable(true), new BytesWritable(new byte[] {1, 2}), new FloatWritable(1.5f), new IntWritable(7), new LongWritable(8), NullWritable.get(),
            new Text("t"), new VIntWritable(9), new VLongWritable(10), new ByteWritable((byte) 11), new ShortWritable((short) 12), new DoubleWritable(2.5)};
        for (Writable w : each) value("x6b=" + w.getClass().getSimpleName() + ":" + (w instanceof BytesWritable ? "x0102" : w instanceof Text ? "x74" : w instanceof NullWritable ? "-" : w.toString()), map(new Text("k"), w));
    }

    static void value(Object text, Writable w) throws IOException { out.println(w.getClass().getName() + " " + text + " " + hex(bytes(w))); }

    /** A set of records. */
    static class Records {
        final Class<?> key, value;
        final List<Writable[]> all = new ArrayList<>();
        Records(Class<?> key, Class<?> value) { this.key = key; this.value = value; }
        Records add(Writable key, Writable value) { all.add(new Writable[] {key, value}); return this; }
    }

    static Map<String, Records> sets() {
        Map<String, Records> sets = new LinkedHashMap<>();
        Records texts = new Records(Text.class, Text.class);
        for (int i = 0; i < 60; i++) texts.add(new Text("key " + i), new Text(("value " + i + " ").repeat(i % 7)));
        sets.put("texts", texts);
        Records longs = new Records(LongWritable.class, BytesWritable.class), ints = new Records(IntWritable.class, DoubleWritable.class);
        Records vints = new Records(VIntWritable.class, VLongWritable.class), bytes = new Records(ByteWritable.class, BooleanWritable.class);
        Records nulls = new Records(NullWritable.class, FloatWritable.class), arrays = new Records(ShortWritable.class, Ints.class), maps = new Records(Text.class, MapWritable.class);
        for (int i = 0; i < 10; i++) {
            long n = (long) Math.pow(-37, i);
            longs.add(new LongWritable(n), new BytesWritable(lines(i * i)));
            ints.add(new IntWritable((int) n), new DoubleWritable(n / 3.0));
            vints.add(new VIntWritable((int) n), new VLongWritable(n));
            bytes.add(new ByteWritable((byte) n), new BooleanWritable(i % 3 == 0));
            nulls.add(NullWritable.get(), new FloatWritable(n / 3.0f));
            arrays.add(new ShortWritable((short) n), new Ints(new int[] {i, -i, (int) n}));
            maps.add(new Text("m" + i), map(new Text("n"), new LongWritable(n)));
        }
        sets.put("longs", longs);
        sets.put("ints", ints);
        sets.put("vints", vints);
        sets.put("bytes", bytes);
        sets.put("nulls", nulls);
        sets.put("arrays", arrays);
        sets.put("maps", maps);
        sets.put("empty", new Records(Text.class, IntWritable.class));
        return sets;
    }

    static void sequences(String dir) throws Exception {
        for (Map.Entry<String, Records> set : sets().entrySet()) {
            Records records = set.getValue();
            out.println("# " + set.getKey() + " " + records.key.getName() + " " + records.value.getName());
            for (Writable[] r : records.all) out.println("x" + hex(bytes(r[0])) + " x" + hex(bytes(r[1])));
            sequence(dir + "/" + set.getKey() + "-none.seq", records, CompressionType.NONE, null);
            for (Map.Entry<String, CompressionCodec> e : all().entrySet()) {
                if (e.getKey().equals("gz")) continue; // without native code Hadoop refuses it in SequenceFiles
                boolean many = set.getKey().equals("texts") || set.getKey().equals("nulls") || set.getKey().equals("empty");
                if (!many && !e.getKey().equals("deflate")) continue;
                sequence(dir + "/" + set.getKey() + "-record-" + e.getKey() + ".seq", records, CompressionType.RECORD, e.getValue());
                sequence(dir + "/" + set.getKey() + "-block-" + e.getKey() + ".seq", records, CompressionType.BLOCK, e.getValue());
            }
        }
    }

    static final byte[] SYNC = "sync-sync-sync-s".getBytes();

    /** Writes a SequenceFile with short distances, and then replaces its random mark by SYNC. */
    static void sequence(String name, Records records, CompressionType type, CompressionCodec codec) throws Exception {
        Configuration c = new Configuration(conf);
        c.setInt("io.seqfile.compress.blocksize", 800);
        SequenceFile.Metadata metadata = new SequenceFile.Metadata();
        metadata.set(new Text("writer"), new Text("Hadoop"));
        metadata.set(new Text("empty"), new Text());
        SequenceFile.Writer w = SequenceFile.createWriter(c, SequenceFile.Writer.file(new Path("file://" + name)), SequenceFile.Writer.keyClass(records.key), SequenceFile.Writer.valueClass(records.value),
            SequenceFile.Writer.compression(type, codec), SequenceFile.Writer.metadata(metadata), SequenceFile.Writer.syncInterval(500));
        Field field = SequenceFile.Writer.class.getDeclaredField("sync");
        field.setAccessible(true);
        byte[] random = (byte[]) field.get(w);
        for (Writable[] r : records.all) w.append(r[0], r[1]);
        w.close();
        byte[] file = Files.readAllBytes(Paths.get(name));
        for (int i = 0; i + random.length <= file.length; i++) {
            if (Arrays.equals(file, i, i + random.length, random, 0, random.length)) System.arraycopy(SYNC, 0, file, i, SYNC.length);
        }
        Files.write(Paths.get(name), file);
    }

    static BufferedReader in() { return new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)); }

    static void read() throws Exception {
        BufferedReader in = in();
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            Path path = new Path("file://" + words[1]);
            String answer;
            try {
                answer = words[0].equals("codec") ? content(path) : records(path);
            } catch (IOException | RuntimeException e) {
                answer = "error " + e;
            }
            out.println(words[1] + " " + answer.replace('\n', ' '));
        }
    }

    static String content(Path path) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        CompressionCodec codec = new CompressionCodecFactory(conf).getCodec(path);
        try (InputStream from = codec.createInputStream(files.open(path))) {
            byte[] buffer = new byte[10_000];
            for (int n; (n = from.read(buffer)) >= 0; ) digest.update(buffer, 0, n);
        }
        return hex(digest.digest());
    }

    static void add(MessageDigest digest, Writable key, Writable value) throws IOException {
        digest.update(("x" + hex(bytes(key)) + " x" + hex(bytes(value)) + "\n").getBytes());
    }

    /** The digest of the classes, metadata and records. */
    static String records(Path path) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        try (SequenceFile.Reader r = new SequenceFile.Reader(conf, SequenceFile.Reader.file(path))) {
            digest.update((r.getKeyClassName() + " " + r.getValueClassName() + "\n").getBytes());
            for (Map.Entry<Text, Text> m : r.getMetadata().getMetadata().entrySet()) digest.update((m.getKey() + "=" + m.getValue() + "\n").getBytes());
            Writable key = (Writable) ReflectionUtils.newInstance(r.getKeyClass(), conf), value = (Writable) ReflectionUtils.newInstance(r.getValueClass(), conf);
            while (r.next(key, value)) add(digest, key, value);
        }
        return hex(digest.digest());
    }

    static void splits() throws Exception {
        BufferedReader in = in();
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            Path path = new Path("file://" + words[1]);
            long size = Long.parseLong(words[2]), length = files.getFileStatus(path).getLen();
            StringBuilder answer = new StringBuilder(words[0] + " " + path.getName() + " " + size);
            for (long from = 0; from < length; from += size) answer.append(' ').append(split(words[0], path, from, Math.min(size, length - from)));
            out.println(answer);
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static String split(String kind, Path path, long from, long length) throws Exception {
        InputFormat format = kind.equals("text") ? new TextInputFormat() : new SequenceFileInputFormat();
        FileSplit split = new FileSplit(path, from, length, null);
        TaskAttemptContextImpl context = new TaskAttemptContextImpl(conf, new TaskAttemptID());
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        int n = 0;
        try (RecordReader r = format.createRecordReader(split, context)) {
            r.initialize(split, context);
            for (; r.nextKeyValue(); n++) {
                if (kind.equals("text")) digest.update((r.getCurrentValue() + "\n").getBytes(StandardCharsets.UTF_8));
                else add(digest, (Writable) r.getCurrentKey(), (Writable) r.getCurrentValue());
            }
        }
        return n + ":" + hex(digest.digest()).substring(0, 16);
    }
}
