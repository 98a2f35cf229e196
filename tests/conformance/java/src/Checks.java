import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Runs checks with Apache Kafka's own Java clients and console tools in one JVM, and prints one
 * JSON line for each: {"name": ..., "failure": null or text, "seconds": ...}. Arguments: bootstrap,
 * data directory, "kafka" or "ottla", and the classes whose checks to run.
 */
public final class Checks {
    interface Body {
        void run() throws Exception;
    }

    private static final int THREADS = 4;
    private static final Map<String, Body> ALL = new LinkedHashMap<>();
    private static final Map<String, Body> TOGETHER = new LinkedHashMap<>();
    private static final PrintStream OUT = System.out;
    static String bootstrap;
    static String dataDirectory;
    static boolean isKafka;
    private static int topics = 0;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        dataDirectory = arguments[1];
        isKafka = arguments[2].equals("kafka");
        for (int i = 3; i < arguments.length; i++) {
            Class.forName(arguments[i]).getDeclaredMethod("define").invoke(null);
        }
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        TOGETHER.forEach((name, body) -> pool.submit(() -> run(name, body)));
        pool.shutdown();
        pool.awaitTermination(100, TimeUnit.SECONDS);
        ALL.forEach(Checks::run);
        Runtime.getRuntime().halt(0);
    }

    private static void run(String name, Body body) {
        String failure = null;
        long startedAt = System.nanoTime();
        try {
            body.run();
        } catch (Throwable thrown) {
            StringWriter text = new StringWriter();
            thrown.printStackTrace(new PrintWriter(text));
            failure = text.toString();
        }
        double seconds = (System.nanoTime() - startedAt) / 1e9;
        OUT.println("{\"name\": " + json(name) + ", \"failure\": " + json(failure) + ", \"seconds\": " + seconds + "}");
        OUT.flush();
    }

    /** A check that wants the process for itself. */
    static void check(String name, Body body) {
        ALL.put(name, body);
    }

    /** A check that mostly waits: it runs while others do. */
    static void together(String name, Body body) {
        TOGETHER.put(name, body);
    }

    static synchronized String newTopic() {
        return "java-" + ++topics;
    }

    static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + " but found " + found);
        }
    }

    static void holds(boolean fact, Object detail) {
        if (!fact) {
            throw new AssertionError(String.valueOf(detail));
        }
    }

    private static String json(String text) {
        if (text == null) {
            return "null";
        }
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                quoted.append('\\').append(c);
            } else if (c < ' ' || c > '~') {
                quoted.append(String.format("\\u%04x", (int) c));
            } else {
                quoted.append(c);
            }
        }
        return quoted.append('"').toString();
    }
}
