import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

/** Answers requests on standard input, one JSON object in a line, with one JSON object in a line. */
final class Server {
  interface Operation {
    Object answer(JsonNode request) throws Exception;
  }

  private static final ObjectMapper JSON = new ObjectMapper();

  private Server() {}

  /** Prints the version and the names of the operations, then answers until standard input ends. */
  static void serve(String version, Map<String, Operation> operations) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    // The answers alone are on standard output.
    System.setOut(System.err);
    answers.println(JSON.writeValueAsString(Map.of("version", version)));
    BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      answers.println(JSON.writeValueAsString(answer(JSON.readTree(line), operations)));
    }
  }

  private static Map<String, Object> answer(JsonNode request, Map<String, Operation> operations) {
    Map<String, Object> answer = new LinkedHashMap<>();
    try {
      answer.put("answer", operations.get(request.get("operation").asText()).answer(request));
    } catch (Exception | StackOverflowError | AssertionError error) {
      answer.put("error", error.getClass().getSimpleName());
      answer.put("message", message(error));
    }
    return answer;
  }

  /** Returns the message of an error, and its first cause, which Parquet's errors hide. */
  private static String message(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause == error ? String.valueOf(error.getMessage()) : error.getMessage() + ": " + cause;
  }

  static byte[] bytes(JsonNode hex) {
    return HexFormat.of().parseHex(hex.asText());
  }

  static String hex(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  /** Returns a Variant as an answer has it. */
  static Map<String, String> variant(ByteBuffer metadata, ByteBuffer value) {
    return Map.of("metadata", hex(metadata), "value", hex(value));
  }

  /** Returns a float as cases have it: special values are text. */
  static Object number(double number) {
    boolean isNegativeZero = number == 0 && 1 / number < 0;
    return Double.isFinite(number) && !isNegativeZero ? (Object) number : String.valueOf(number);
  }
}
