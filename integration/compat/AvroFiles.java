import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;

/**
 * Writes and reads files with Java's Avro.
 *
 * AvroFiles version      prints Avro's version
 * AvroFiles write DIR    writes files of each codec, and prints their records
 * AvroFiles read         for each line "PATH" prints the path, and the digest of the content
 * AvroFiles splits       for each line "PATH SIZE" prints the file, the size, and the splits' numbers of records and digests
 */
public class AvroFiles {
    static final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final byte[] SYNC = "sync-sync-sync-s".getBytes(StandardCharsets.UTF_8);
    static final String[] CODECS = {"null", "deflate", "snappy", "zstandard", "bzip2"};

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "version": out.println(Schema.class.getPackage().getImplementationVersion()); break;
            case "write": write(args[1]); break;
            case "read": read(); break;
            case "splits": splits(); break;
            default: throw new IllegalArgumentException(args[0]);
        }
        out.flush();
    }

    static final String ALL = "{'type': 'record', 'name': 'All', 'namespace': 'test', 'doc': 'every type', 'fields': ["
        + "{'name': 'none', 'type': 'null'}, {'name': 'flag', 'type': 'boolean'}, {'name': 'i', 'type': 'int'}, {'name': 'l', 'type': 'long', 'default': 7},"
        + "{'name': 'f', 'type': 'float'}, {'name': 'd', 'type': 'double'}, {'name': 'b', 'type': 'bytes'}, {'name': 's', 'type': 'string'},"
        + "{'name': 'e', 'type': {'type': 'enum', 'name': 'Suit', 'symbols': ['SPADES', 'HEARTS']}}, {'name': 'x', 'type': {'type': 'fixed', 'name': 'Four', 'size': 4}},"
        + "{'name': 'a', 'type': {'type': 'array', 'items': 'long'}}, {'name': 'm', 'type': {'type': 'map', 'values': 'string'}},"
        + "{'name': 'u', 'type': ['null', 'string', {'type': 'record', 'name': 'Inner', 'fields': [{'name': 'next', 'type': ['null', 'Inner']}]}]},"
        + "{'name': 'at', 'type': {'type': 'long', 'logicalType': 'timestamp-millis'}}, {'name': 'day', 'type': {'type': 'int', 'logicalType': 'date'}},"
        + "{'name': 'money', 'type': {'type': 'bytes', 'logicalType': 'decimal', 'precision': 9, 'scale': 2}}]}";
    static final String PAIR = "{'type': 'record', 'name': 'KeyValuePair', 'namespace': 'org.apache.avro.mapreduce', 'doc': 'A key/value pair', 'fields': ["
        + "{'name': 'key', 'type': 'string', 'doc': 'The key'}, {'name': 'value', 'type': 'long', 'doc': 'The value'}]}";

    static class Records {
        final Schema schema;
        final List<Object> all = new ArrayList<>();
        Records(String schema) { this.schema = new Schema.Parser().parse(schema.replace('\'', '"')); }
    }

    static Map<String, Records> sets() {
        Records all = new Records(ALL), pairs = new Records(PAIR), texts = new Records("'string'");
        for (int i = 0; i < 60; i++) {
            long n = (long) Math.pow(-37, i % 12);
            GenericRecord r = new GenericData.Record(all.schema);
            r.put("none", null);
            r.put("flag", i % 3 == 0);
            r.put("i", (int) n);
            r.put("l", n);
            r.put("f", n / 3.0f);
            r.put("d", n / 3.0);
            r.put("b", ByteBuffer.wrap(("bytes " + i).repeat(i % 5).getBytes(StandardCharsets.UTF_8)));
            r.put("s", ("text ü " + i).repeat(i % 4));
            r.put("e", new GenericData.EnumSymbol(all.schema.getField("e").schema(), i % 2 == 0 ? "SPADES" : "HEARTS"));
            r.put("x", new GenericData.Fixed(all.schema.getField("x").schema(), new byte[] {1, 2, (byte) i, 4}));
            List<Long> numbers = new ArrayList<>();
            for (long k = 0; k < i % 4; k++) numbers.add(k * n);
            r.put("a", numbers);
            r.put("m", i % 2 == 0 ? Map.of() : Map.of("key", "value " + i));
            GenericRecord inner = new GenericData.Record(all.schema.getField("u").schema().getTypes().get(2));
            inner.put("next", i % 6 == 5 ? new GenericData.Record(inner.getSchema()) : null);
            r.put("u", i % 3 == 0 ? null : i % 3 == 1 ? "branch" : inner);
            r.put("at", 1_700_000_000_000L + i);
            r.put("day", 19_000 + i);
            r.put("money", ByteBuffer.wrap(java.math.BigInteger.valueOf(i * 1001L - 5).toByteArray()));
            all.all.add(r);
            GenericRecord pair = new GenericData.Record(pairs.schema);
            pair.put("key", "word" + i);
            pair.put("value", n);
            pairs.all.add(pair);
            texts.all.add("line " + i * i % 97);
        }
        Map<String, Records> sets = new LinkedHashMap<>();
        sets.put("all", all);
        sets.put("pairs", pairs);
        sets.put("texts", texts);
        sets.put("empty", new Records(PAIR));
        return sets;
    }

    static void write(String dir) throws IOException {
        for (Map.Entry<String, Records> set : sets().entrySet()) {
            Records records = set.getValue();
            out.println("# " + set.getKey() + " " + records.schema);
            for (Object r : records.all) out.println("x" + hex(records.schema, r));
            for (String codec : CODECS) {
                DataFileWriter<Object> w = new DataFileWriter<>(new GenericDatumWriter<>(records.schema));
                w.setCodec(CodecFactory.fromString(codec)).setSyncInterval(500).setMeta("writer", "Java").setMeta("empty", "");
                w.create(records.schema, Files.newOutputStream(new File(dir, set.getKey() + "-" + codec + ".avro").toPath()), SYNC);
                for (Object r : records.all) w.append(r);
                w.close();
            }
        }
    }

    static String hex(Schema schema, Object record) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(bytes, null);
        new GenericDatumWriter<>(schema).write(record, encoder);
        encoder.flush();
        return hex(bytes.toByteArray());
    }

    static String hex(byte[] bytes) {
        StringBuilder b = new StringBuilder();
        for (byte x : bytes) b.append(String.format("%02x", x));
        return b.toString();
    }

    static MessageDigest digest() throws Exception { return MessageDigest.getInstance("SHA-256"); }

    static void add(MessageDigest digest, String line) { digest.update((line + "\n").getBytes(StandardCharsets.UTF_8)); }

    static BufferedReader in() { return new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)); }

    static void read() throws Exception {
        BufferedReader in = in();
        for (String path; (path = in.readLine()) != null; ) {
            String answer;
            try (DataFileReader<Object> file = new DataFileReader<>(new File(path), new GenericDatumReader<>())) {
                MessageDigest digest = digest();
                add(digest, file.getSchema().getFullName());
                for (String key : new TreeSet<>(file.getMetaKeys())) {
                    if (!DataFileWriter.isReservedMeta(key)) add(digest, key + "=" + file.getMetaString(key));
                }
                while (file.hasNext()) add(digest, "x" + hex(file.getSchema(), file.next()));
                answer = hex(digest.digest());
            } catch (IOException | RuntimeException e) {
                answer = "error " + e;
            }
            out.println(path + " " + answer.replace('\n', ' '));
        }
    }

    static void splits() throws Exception {
        BufferedReader in = in();
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            File path = new File(words[0]);
            long size = Long.parseLong(words[1]);
            out.print(path.getName() + " " + size);
            for (long from = 0; from < path.length(); from += size) {
                MessageDigest digest = digest();
                long n = 0;
                try (DataFileReader<Object> file = new DataFileReader<>(path, new GenericDatumReader<>())) {
                    for (file.sync(from); file.hasNext() && !file.pastSync(from + size); n++) add(digest, "x" + hex(file.getSchema(), file.next()));
                }
                out.print(" " + n + ":" + hex(digest.digest()).substring(0, 16));
            }
            out.println();
        }
    }
}
