import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;

/**
 * Writes and reads the rows of parquetrows with Hadoop's Parquet.
 *
 * ParquetRows write DIR ROWS CODEC...    writes DIR/java-CODEC-v1.parquet and -v2.parquet for each codec
 * ParquetRows read                       for each line PATH prints the rows of the file
 */
public class ParquetRows {
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final Configuration conf = new Configuration();
    static final MessageType SCHEMA = MessageTypeParser.parseMessageType("message rows { required int64 n; required boolean b; required int32 i8 (INTEGER(8,true)); required int32 i16 (INTEGER(16,true));"
        + " required int32 i32; required int32 u8 (INTEGER(8,false)); required int32 u16 (INTEGER(16,false)); required int32 u32 (INTEGER(32,false)); required int64 u64 (INTEGER(64,false));"
        + " required float f; required double d; required binary s (STRING); required binary x; required int32 day (DATE); required int64 us (TIMESTAMP(MICROS,true));"
        + " required int64 ms (TIMESTAMP(MILLIS,true)); required int64 ns (TIMESTAMP(NANOS,true)); required int32 dec9 (DECIMAL(9,3)); required int64 dec15 (DECIMAL(15,2));"
        + " optional int64 ni; optional binary nss (STRING); optional int64 nd (DECIMAL(15,2)); }");

    public static void main(String[] args) throws Exception {
        conf.set("fs.file.impl", RawLocalFileSystem.class.getName()); // without files of checksums
        if (args[0].equals("write")) {
            for (int i = 3; i < args.length; i++) {
                for (WriterVersion version : WriterVersion.values()) write(args[1], Long.parseLong(args[2]), args[i], version);
            }
        } else {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String path; (path = in.readLine()) != null; ) read(path);
        }
        out.flush();
    }

    static void write(String dir, long rows, String codec, WriterVersion version) throws IOException {
        Path file = new Path("file://" + dir + "/java-" + codec + (version == WriterVersion.PARQUET_1_0 ? "-v1" : "-v2") + ".parquet");
        try (ParquetWriter<Group> w = ExampleParquetWriter.builder(file).withConf(conf).withType(SCHEMA).withWriterVersion(version)
                .withCompressionCodec(CompressionCodecName.valueOf(codec.toUpperCase())).withPageSize(600).build()) {
            for (long n = 0; n < rows; n++) w.write(row(n));
        }
    }

    static Group row(long n) {
        String s = "word " + n % 7;
        Group g = new SimpleGroup(SCHEMA).append("n", n).append("b", n % 2 == 0).append("i8", (int) (n % 100 - 50)).append("i16", (int) n * 10).append("i32", (int) n * -1000)
            .append("u8", (int) n % 200).append("u16", (int) n * 60).append("u32", (int) (n * 4_000_000)).append("u64", n << 54).append("f", n / 4f).append("d", n / -8.0).append("s", s)
            .append("x", Binary.fromConstantByteArray(s.getBytes(StandardCharsets.UTF_8))).append("day", (int) n * 37 - 1000).append("us", n * 1_000_003).append("ms", n * 1003)
            .append("ns", n * 1_000_000_007).append("dec9", (int) (n * n - 99)).append("dec15", n * n * n);
        return n % 5 > 0 ? g.append("ni", n).append("nss", s).append("nd", n) : g;
    }

    static void read(String path) throws IOException {
        try (ParquetReader<Group> r = ParquetReader.builder(new GroupReadSupport(), new Path("file://" + path)).withConf(conf).build()) {
            for (Group g; (g = r.read()) != null; ) out.println(text(g));
        }
    }

    static String text(Group g) {
        StringBuilder x = new StringBuilder();
        for (byte b : g.getBinary("x", 0).getBytes()) x.append(String.format("%02X", b));
        return String.join("|", "" + g.getLong("n", 0), g.getBoolean("b", 0) ? "1" : "0", "" + g.getInteger("i8", 0), "" + g.getInteger("i16", 0), "" + g.getInteger("i32", 0),
            "" + g.getInteger("u8", 0), "" + g.getInteger("u16", 0), Integer.toUnsignedString(g.getInteger("u32", 0)), Long.toUnsignedString(g.getLong("u64", 0)),
            "" + (long) (g.getFloat("f", 0) * 4), "" + (long) (g.getDouble("d", 0) * 8), g.getString("s", 0), x, "" + g.getInteger("day", 0), "" + g.getLong("us", 0), "" + g.getLong("ms", 0),
            "" + g.getLong("ns", 0), "" + g.getInteger("dec9", 0), "" + g.getLong("dec15", 0), optional(g, "ni"), optional(g, "nss"), optional(g, "nd"));
    }

    static String optional(Group g, String field) { return g.getFieldRepetitionCount(field) == 0 ? "NULL" : g.getValueToString(g.getType().getFieldIndex(field), 0); }
}
