import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Random;

/**
 * Prints the table that the tests compare with, on Java 8 to 17:
 * java JavaTable.java > java.txt
 *
 * double and float: bits in hex, text, hash. long: value, text, hash. text: bytes in hex, hash.
 */
public class JavaTable {
    static final PrintStream out = System.out;

    public static void main(String[] args) {
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
        out.println("double " + Long.toHexString(Double.doubleToLongBits(d)) + " " + Double.toString(d) + " " + (int) Double.doubleToLongBits(d));
    }

    static void put(float f) {
        out.println("float " + Integer.toHexString(Float.floatToIntBits(f)) + " " + Float.toString(f) + " " + Float.floatToIntBits(f));
    }

    static void put(long l) {
        out.println("long " + l + " " + l + " " + (int) l);
    }

    /** Text and BytesWritable hash their bytes as WritableComparator.hashBytes does. */
    static void put(byte[] b) {
        StringBuilder hex = new StringBuilder("x");
        int hash = 1;
        for (byte x : b) {
            hex.append(String.format("%02x", x));
            hash = 31 * hash + (int) x;
        }
        out.println("text " + hex + " - " + hash);
    }
}
