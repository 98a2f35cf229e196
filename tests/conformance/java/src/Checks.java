import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * Runs checks with Apache Kafka's own Java clients and console tools in one JVM, and prints one
 * JSON line for each: {"name": ..., "failure": null or text}. Arguments: bootstrap, data directory.
 */
public final class Checks {
    interface Body {
        void run() throws Exception;
    }

    static final Map<String, Body> ALL = new LinkedHashMap<>();
    static String bootstrap;
    static String dataDirectory;
    private static int topics = 0;

    public static void main(String[] arguments) {
        bootstrap = arguments[0];
        dataDirectory = arguments[1];
        PrintStream out = System.out;
        JavaClients.define();
        JavaAdmin.define();
        JavaTools.define();
        ALL.forEach((name, body) -> {
            String failure = null;
            try {
                body.run();
            } catch (Throwable thrown) {
                StringWriter text = new StringWriter();
                thrown.printStackTrace(new PrintWriter(text));
                failure = text.toString();
            }
            out.println("{\"name\": " + json(name) + ", \"failure\": " + json(failure) + "}");
            out.flush();
        });
        Runtime.getRuntime().halt(0);
    }

    static void check(String name, Body body) {
        ALL.put(name, body);
    }

    static String newTopic() {
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
