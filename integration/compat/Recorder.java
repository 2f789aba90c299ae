import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathFilter;
import org.apache.hadoop.io.BinaryComparable;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.DoubleWritable;
import org.apache.hadoop.io.FloatWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.mapred.FileInputFormat;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapreduce.InputFormat;
import org.apache.hadoop.mapreduce.InputSplit;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.RecordReader;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.lib.input.FileSplit;
import org.apache.hadoop.mapreduce.lib.input.FixedLengthInputFormat;
import org.apache.hadoop.mapreduce.lib.input.KeyValueLineRecordReader;
import org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat;
import org.apache.hadoop.mapreduce.lib.input.NLineInputFormat;
import org.apache.hadoop.mapreduce.lib.input.TextInputFormat;
import org.apache.hadoop.mapreduce.task.JobContextImpl;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.hadoop.util.StringUtils;
import org.apache.hadoop.util.VersionInfo;

/**
 * Prints Hadoop's answers as a file of testdata.
 *
 * Recorder globs|inputs|names|lines|keyvalues < FILE    prints FILE with Hadoop's answer in each line
 * Recorder renamed < FILE                               prints FILE's comments, then Hadoop's table
 * Recorder writables|properties|version
 */
public class Recorder {
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "globs": globs(); break;
            case "inputs": inputs(); break;
            case "names": names(); break;
            case "lines": lines(); break;
            case "keyvalues": keyValues(); break;
            case "writables": writables(); break;
            case "properties": properties(); break;
            case "renamed": renamed(); break;
            case "version": out.println(VersionInfo.getVersion() + " on Java " + System.getProperty("java.version")); break;
            default: throw new IllegalArgumentException(args[0]);
        }
        out.flush();
    }

    static BufferedReader in() {
        return new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    }

    interface Answer { String to(String question) throws Exception; }

    /** Prints the input with Hadoop's answer in each line QUESTION = ANSWER REST. REST begins with " + " or " ! ": Quern's own note. The files of other lines are made below root. */
    static void table(java.nio.file.Path root, Answer answer) throws Exception {
        BufferedReader in = in();
        for (String line; (line = in.readLine()) != null; ) {
            int equals = line.indexOf(" = ");
            if (line.startsWith("#") || equals < 0) {
                if (root != null) plant(root, line.split(" "));
                out.println(line);
                continue;
            }
            String question = line.substring(0, equals), after = line.substring(equals + 3);
            int rest = after.indexOf(" + ") >= 0 ? after.indexOf(" + ") : after.indexOf(" ! ");
            out.println(question + " = " + answer.to(question) + (rest < 0 ? "" : after.substring(rest)));
        }
    }

    /** The lines in each split: of TextInputFormat with a delimiter, a maximum length and a split size, and of NLineInputFormat. */
    static void lines() throws Exception {
        java.nio.file.Path file = Paths.get("lines.txt").toAbsolutePath();
        Path path = new Path(file.toUri());
        table(null, question -> {
            String[] words = question.split(" ");
            byte[] content = unescape(words[1]).getBytes(StandardCharsets.UTF_8);
            Files.write(file, content);
            Configuration conf = new Configuration();
            List<FileSplit> splits = new ArrayList<>();
            if (words[0].equals("nlines")) {
                splits = NLineInputFormat.getSplitsForFile(FileSystem.getLocal(conf).getFileStatus(path), conf, Integer.parseInt(words[2]));
            } else {
                boolean lines = words[0].equals("lines");
                if (lines && !words[2].equals("-")) conf.set("textinputformat.record.delimiter", unescape(words[2]));
                if (lines && !words[3].equals("-")) conf.set("mapreduce.input.linerecordreader.line.maxlength", words[3]);
                long size = Long.parseLong(words[words.length - 1]);
                for (long from = 0; from < content.length; from += size) splits.add(new FileSplit(path, from, Math.min(size, content.length - from), null));
            }
            boolean fixed = words[0].equals("records");
            if (fixed) FixedLengthInputFormat.setRecordLength(conf, Integer.parseInt(words[2]));
            List<String> found = new ArrayList<>();
            for (FileSplit split : splits) found.add(fixed ? records(new FixedLengthInputFormat(), split, conf, false) : records(new TextInputFormat(), split, conf, false));
            return String.join(" ", found);
        });
    }

    /** The records of a split, key (if wanted) and value each in brackets; after them "error" if reading fails. */
    static <K, V extends BinaryComparable> String records(InputFormat<K, V> format, FileSplit split, Configuration conf, boolean keys) throws Exception {
        StringBuilder records = new StringBuilder();
        TaskAttemptContextImpl context = new TaskAttemptContextImpl(conf, new TaskAttemptID());
        try (RecordReader<K, V> r = format.createRecordReader(split, context)) {
            r.initialize(split, context);
            while (r.nextKeyValue()) {
                V value = r.getCurrentValue();
                if (keys) records.append('[').append(escape(r.getCurrentKey().toString())).append(']');
                records.append('[').append(escape(new String(value.getBytes(), 0, value.getLength(), StandardCharsets.UTF_8))).append(']');
            }
        } catch (IOException e) {
            records.append("error");
        }
        return records.length() == 0 ? "-" : records.toString();
    }

    /** Key and value of each line of a text, by KeyValueTextInputFormat. */
    static void keyValues() throws Exception {
        java.nio.file.Path file = Paths.get("keyvalues.txt").toAbsolutePath();
        table(null, question -> {
            String[] words = question.split(" ");
            byte[] content = unescape(words[0]).getBytes(StandardCharsets.UTF_8);
            Files.write(file, content);
            Configuration conf = new Configuration();
            if (!words[1].equals("-")) conf.set(KeyValueLineRecordReader.KEY_VALUE_SEPARATOR, words[1]);
            return records(new KeyValueTextInputFormat(), new FileSplit(new Path(file.toUri()), 0, content.length, null), conf, true);
        });
    }

    static String unescape(String s) { return s.replace("\\t", "\t").replace("\\n", "\n").replace("\\r", "\r").replace("\\ufeff", "\ufeff"); }

    static String escape(String s) { return s.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r").replace("\ufeff", "\\ufeff"); }

    /** FileSystem.globStatus on a local tree, with FileInputFormat's filter of hidden names. */
    static void globs() throws Exception {
        java.nio.file.Path root = Files.createDirectory(Paths.get("globs").toAbsolutePath());
        FileSystem files = FileSystem.getLocal(new Configuration());
        Field field = FileInputFormat.class.getDeclaredField("hiddenFileFilter");
        field.setAccessible(true);
        PathFilter hidden = (PathFilter) field.get(null);
        table(root, pattern -> found(files, root.toString(), pattern, hidden));
    }

    /** Makes the files or empty directories of a line "files PATH..." or "empty PATH...". */
    static void plant(java.nio.file.Path root, String[] words) throws IOException {
        for (int i = 1; i < words.length; i++) {
            java.nio.file.Path path = Paths.get(root + words[i]);
            if (words[0].equals("empty")) Files.createDirectories(path);
            if (words[0].equals("files")) {
                Files.createDirectories(path.getParent());
                Files.write(path, "x\n".getBytes());
            }
        }
    }

    /** The files that a job reads, from a path and with or without its subdirectories. */
    static void inputs() throws Exception {
        java.nio.file.Path root = Files.createDirectory(Paths.get("inputs").toAbsolutePath());
        table(root, question -> {
            String[] words = question.split(" ");
            Configuration conf = new Configuration();
            conf.setBoolean("mapreduce.input.fileinputformat.input.dir.recursive", words[1].equals("recursive"));
            conf.set("mapreduce.input.fileinputformat.inputdir", StringUtils.escapeString("file://" + root + words[0]));
            List<String> found = new ArrayList<>();
            try {
                for (InputSplit split : new TextInputFormat().getSplits(new JobContextImpl(conf, new JobID()))) {
                    Path path = ((FileSplit) split).getPath();
                    path.getFileSystem(conf).open(path).close(); // as its map does: it fails for a directory
                    found.add(path.toUri().getPath().substring(root.toString().length()));
                }
            } catch (IOException | RuntimeException e) { // Hadoop dereferences the blocks of a directory
                found = List.of("error");
            }
            return found.isEmpty() ? "none" : found.stream().sorted().collect(Collectors.joining(" "));
        });
    }

    static String found(FileSystem files, String root, String pattern, PathFilter filter) {
        try {
            FileStatus[] found = files.globStatus(new Path(root + pattern), filter);
            if (found == null || found.length == 0) return "none";
            return Arrays.stream(found).map(f -> f.getPath().toUri().getPath().substring(root.length())).sorted().collect(Collectors.joining(" "));
        } catch (IOException | RuntimeException e) {
            return "error";
        }
    }

    /** Qualifies paths with the local file system and the working directory /here. */
    static void names() throws Exception {
        table(null, question -> {
            try {
                String name = question.substring(1, question.length() - 1).replace("\\x00", "\0");
                URI uri = new Path(name).makeQualified(URI.create("file:///"), new Path("/here")).toUri();
                return uri.getScheme() + "://" + (uri.getAuthority() == null ? "" : uri.getAuthority()) + uri.getPath().replace("\0", "\\x00");
            } catch (IllegalArgumentException e) {
                return "error";
            }
        });
    }

    /** Prints for double and float: bits in hex, text, hash; for long: value, text, hash; for text: bytes in hex, hash. */
    static void writables() {
        double[] doubles = {0.0, -0.0, 1, -1, 100, 0.1, 0.001, 0.00099999, 9999999, 9999999.999, 1e7, 1e10, 1e-5, 123456789.125,
            Double.MIN_VALUE, Double.MAX_VALUE, Double.MIN_NORMAL, 2 * Double.MIN_VALUE, Math.PI, Math.E, 1e21, 1e22, 1e23, 2e23, 8.41e21,
            Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, 9007199254740992.0, 9007199254740993.0, 9.223372036854775807e18,
            1.8446744073709552e19, 4.611686018427388e18, 3.0e-3, 2.0e-3, 1.1e-3};
        for (double d : doubles) put(d);
        float[] floats = {0f, -0f, 1f, -1f, 0.1f, 0.001f, 0.0009999f, 9999999f, 1e7f, 1e10f, 1e-5f, 3.4e38f, Float.MIN_VALUE, Float.MAX_VALUE,
            Float.MIN_NORMAL, Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, 16777216f, 16777217f, 33554432f, 1.0e10f, 123456.7f};
        for (float f : floats) put(f);
        long[] longs = {0, 1, -1, 42, Integer.MAX_VALUE, Integer.MIN_VALUE, 1L << 32, Long.MAX_VALUE, Long.MIN_VALUE, 1234567890123L};
        for (long l : longs) put(l);
        String[] texts = {"", "a", "ab", "abc", "hello", "Hadoop", "\u00e4\u00f6\u00fc", "\u65e5\u672c\u8a9e", "a\u0000b", "the quick brown fox jumps"};
        for (String s : texts) put(s.getBytes(StandardCharsets.UTF_8));
        Random r = new Random(1);
        for (int i = 0; i < 300; i++) {
            put(Double.longBitsToDouble(r.nextLong()));
            put(r.nextInt(1000000) / 100.0 * r.nextInt(100));
            put((double) (r.nextLong() >> r.nextInt(60)));
            put(Float.intBitsToFloat(r.nextInt()));
            put((float) (r.nextLong() >> r.nextInt(60)));
            put(r.nextLong() >> r.nextInt(64));
            byte[] b = new byte[r.nextInt(20)];
            r.nextBytes(b);
            put(b);
        }
    }

    static void put(double d) {
        DoubleWritable w = new DoubleWritable(d);
        out.println("double " + Long.toHexString(Double.doubleToLongBits(d)) + " " + w + " " + w.hashCode());
    }

    static void put(float f) {
        FloatWritable w = new FloatWritable(f);
        out.println("float " + Integer.toHexString(Float.floatToIntBits(f)) + " " + w + " " + w.hashCode());
    }

    static void put(long l) {
        LongWritable w = new LongWritable(l);
        out.println("long " + l + " " + w + " " + w.hashCode());
    }

    static void put(byte[] b) {
        int hash = new Text(b).hashCode();
        if (hash != new BytesWritable(b).hashCode()) throw new IllegalStateException("Text and BytesWritable differ in hashes");
        StringBuilder hex = new StringBuilder("x");
        for (byte x : b) hex.append(String.format("%02x", x));
        out.println("text " + hex + " - " + hash);
    }

    /** Prints the property names in the lists of MapReduce, of the core and of HDFS, also those in comments. */
    static void properties() throws IOException {
        TreeSet<String> names = new TreeSet<>();
        for (String file : List.of("/mapred-default.xml", "/core-default.xml", "/hdfs-default.xml")) {
            String list = new String(JobConf.class.getResourceAsStream(file).readAllBytes(), StandardCharsets.UTF_8);
            for (Matcher m = Pattern.compile("<name>\\s*(\\S+)\\s*</name>").matcher(list); m.find(); ) names.add(m.group(1));
        }
        names.forEach(out::println);
    }

    /** Current names of HDFS's daemons. */
    static final Pattern DAEMONS = Pattern.compile("\t(dfs\\.(namenode|datanode|journalnode|ha|federation|cluster|metrics|web|nfs|permissions|https|http|balancer)|nfs)\\.");

    /** Prints the old names of properties, except names in the lines "# without NAME...". */
    static void renamed() throws IOException {
        TreeSet<String> without = new TreeSet<>();
        BufferedReader in = in();
        for (String line; (line = in.readLine()) != null && line.startsWith("#"); out.println(line)) {
            if (line.startsWith("# without ")) without.addAll(Arrays.asList(line.split(" ")));
        }
        new JobConf(); // registers MapReduce's names
        HdfsConfiguration.init();
        PrintStream stdout = System.out;
        ByteArrayOutputStream dumped = new ByteArrayOutputStream();
        System.setOut(new PrintStream(dumped, true, StandardCharsets.UTF_8));
        Configuration.dumpDeprecatedKeys();
        System.setOut(stdout);
        dumped.toString(StandardCharsets.UTF_8).lines().sorted().map(String::strip)
            .filter(line -> !without.contains(line.split("\t")[0]) && !DAEMONS.matcher(line).find()).forEach(out::println);
    }
}
