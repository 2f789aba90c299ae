import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsShell;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.util.ToolRunner;

/**
 * Runs Hadoop's FsShell in the working directory, and prints the table of commands with its answers.
 *
 * Shell TOP [DEFAULT-FS] < TABLE. TOP is the top of the repository. Package shelltable has the
 * format of the table.
 */
public class Shell {
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final PrintStream err = System.err;
    static final String cwd = System.getProperty("user.dir");

    static String defaultFS;
    static int setups;

    /** The local file system with sorted listings, as in HDFS. */
    public static class Sorted extends LocalFileSystem {
        @Override public FileStatus[] listStatus(org.apache.hadoop.fs.Path path) throws IOException {
            FileStatus[] all = super.listStatus(path);
            Arrays.sort(all);
            return all;
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length > 1) defaultFS = args[1];
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String input = "";
        for (String line; (line = in.readLine()) != null; ) {
            if (line.startsWith("> ") || line.startsWith("! ") || line.startsWith("= ")) continue;
            out.println(line);
            String[] words = line.split(" ", 3);
            switch (words[0]) {
                case "dir": Files.createDirectories(Paths.get(words[1])); set(words[1], "rwxr-xr-x"); break;
                case "file": put(words[1], text(words[2])); break;
                case "copy": put(words[1], Files.readAllBytes(Paths.get(args[0], words[2]))); break;
                case "input": input = line.substring("input ".length()); break;
                case "$": run(line.substring(2).replace("/top", cwd).replace("hdfs://nn", defaultFS == null ? "hdfs://nn" : defaultFS).split(" "), text(input)); input = ""; break;
            }
        }
        out.flush();
        System.exit(0);
    }

    static byte[] text(String escaped) { return escaped.replace("\\n", "\n").replace("\\t", "\t").getBytes(StandardCharsets.UTF_8); }

    static void put(String name, byte[] content) throws Exception {
        Path parent = Paths.get(name).getParent();
        if (parent != null) Files.createDirectories(parent);
        Files.write(Paths.get(name), content);
        set(name, "rw-r--r--");
    }

    static void set(String name, String mode) throws Exception {
        Files.setPosixFilePermissions(Paths.get(name), PosixFilePermissions.fromString(mode));
        Files.setLastModifiedTime(Paths.get(name), FileTime.from(Instant.parse("2001-02-03T04:05:00Z").plusSeconds(60L * setups++)));
    }

    static void run(String[] args, byte[] input) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream(), messages = new ByteArrayOutputStream();
        System.setOut(new PrintStream(printed, true));
        System.setErr(new PrintStream(messages, true));
        System.setIn(new ByteArrayInputStream(input));
        Configuration conf = new Configuration();
        conf.setClassLoader(Shell.class.getClassLoader());
        conf.setClass("fs.file.impl", Sorted.class, LocalFileSystem.class);
        if (defaultFS != null) conf.set("fs.defaultFS", defaultFS);
        conf.setInt("dfs.replication", 2);
        int code = ToolRunner.run(conf, new FsShell(), args);
        System.setErr(err);
        print("> ", printed, args[0]);
        print("! ", messages, args[0]);
        out.println("= " + (code & 0xff));
    }

    static void print(String mark, ByteArrayOutputStream bytes, String command) throws Exception {
        String text = bytes.toString(StandardCharsets.UTF_8).replace(cwd, "/top").replace("\0", "\\0");
        if (defaultFS != null) text = text.replace(defaultFS, "hdfs://nn");
        if (text.isEmpty()) return;
        boolean whole = text.endsWith("\n");
        String[] lines = (whole ? text.substring(0, text.length() - 1) : text).split("\n", -1);
        if (lines.length > 60) {
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes.toByteArray());
            out.println(mark + lines.length + " lines, SHA-256 " + String.format("%064x", new BigInteger(1, sum)));
            return;
        }
        for (int i = 0; i < lines.length; i++) {
            if (lines[i].startsWith("Usage: ") || lines[i].startsWith("java.lang.")) return; // the program's own
            String line = lines[i].replaceAll("^([d-][rwxtT-]{9}[+ ] +\\S+) \\S+ +\\S+ ", "$1 OWNER GROUP ").replaceAll("^(d.*OWNER GROUP) {5} *[0-9.]+( [KMG])? ", "$1 SIZE ").replaceAll("20(?!01)\\d\\d-\\d\\d-\\d\\d \\d\\d:\\d\\d(:\\d\\d)?", "NOW");
            if (command.equals("-df")) line = line.replaceAll(" +", " ").replaceAll("\\b\\d+(\\.\\d+)?( [KMGTPE])?\\b", "N");
            out.println(mark + line + (i == lines.length - 1 && !whole ? "\\" : ""));
        }
    }
}
