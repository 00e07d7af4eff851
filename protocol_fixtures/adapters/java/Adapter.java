import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.*;
import java.util.stream.*;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.Version;
import org.apache.parquet.avro.*;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.variant.*;

/** An adapter for parquet-java, by WORKERS.md alone. It answers cases of the kinds decode, encode, unshred, file. */
class Adapter {
  private static final HexFormat HEX = HexFormat.of();
  private static final Map<String, String> NAMES =
      Map.of("BYTE", "int8", "SHORT", "int16", "INT", "int32", "LONG", "int64", "TIMESTAMP_TZ", "timestamp",
          "TIMESTAMP_NANOS_TZ", "timestamp_nanos", "TIMESTAMP_NANOS_NTZ", "timestamp_ntz_nanos");

  public static void main(String[] arguments) throws Exception {
    ObjectMapper json = new ObjectMapper();
    System.out.println(json.writeValueAsString(Map.of("ready", Version.VERSION_NUMBER)));
    for (Scanner lines = new Scanner(System.in, "UTF-8"); lines.hasNextLine(); ) {
      JsonNode request = json.readTree(lines.nextLine());
      Map<String, Object> answer = new HashMap<>(Map.of("number", request.get("number")));
      try {
        Object rows = request.get("options").isEmpty() ? rows(request, request.get("input")) : null;
        answer.put("outcome", rows == null ? "not offered" : "answered");
        answer.put("content", Collections.singletonMap("rows", rows));
      } catch (Exception error) {
        answer.putAll(Map.of("outcome", "refused", "message", error.toString()));
      }
      System.out.println(json.writeValueAsString(answer));
    }
  }

  /** Returns the rows of an answer, or null if the case is not offered. */
  private static Object rows(JsonNode request, JsonNode input) throws Exception {
    return switch (request.get("kind").asText()) {
      case "decode" -> List.of(typed(new Variant(
          HEX.parseHex(input.get("value").asText()), HEX.parseHex(input.get("metadata").asText()))));
      case "encode" -> List.of(cell(VariantJsonParser.parseJson(input.get("json").asText())));
      case "unshred", "file" -> read(request.get("folder").asText(), input);
      default -> null;
    };
  }

  private static Object cell(Variant v) {
    return Map.of("$variant", List.of(hex(v.getMetadataBuffer()), hex(v.getValueBuffer())));
  }

  private static String hex(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return HEX.formatHex(bytes);
  }

  private static Object read(String folder, JsonNode input) throws Exception {
    LocalInputFile file = new LocalInputFile(Path.of(folder, input.get("file").asText()));
    Configuration configuration = new Configuration(false);
    try (ParquetFileReader reader = ParquetFileReader.open(file)) {
      var schema = new AvroSchemaConverter(configuration).convert(reader.getFileMetaData().getSchema());
      AvroReadSupport.setAvroReadSchema(configuration, schema); // a stored one may have shredded columns
    }
    List<Object> rows = new ArrayList<>();
    try (var reader = AvroParquetReader.<GenericRecord>builder(file).withConf(configuration).build()) {
      for (GenericRecord row = reader.read(); row != null; row = reader.read()) {
        GenericRecord group = (GenericRecord) row.get(input.path("column").asText("v"));
        if (group != null && group.getSchema().getFields().size() != 2) {
          throw new IllegalArgumentException("the column is not read as a Variant: " + group.getSchema());
        }
        rows.add(group == null ? null
            : cell(new Variant((ByteBuffer) group.get("value"), (ByteBuffer) group.get("metadata"))));
      }
    }
    return rows;
  }

  /** Returns the typed value of a Variant: parquet-java prints no JSON. */
  private static Object typed(Variant v) {
    Object payload = switch (v.getType()) {
      case NULL -> null;
      case BOOLEAN -> v.getBoolean();
      case FLOAT -> v.getFloat();
      case DOUBLE -> v.getDouble();
      case DECIMAL4, DECIMAL8, DECIMAL16 -> v.getDecimal().toPlainString();
      case STRING -> v.getString();
      case BINARY -> hex(v.getBinary());
      case UUID -> v.getUUID().toString();
      case ARRAY -> IntStream.range(0, v.numArrayElements()).mapToObj(i -> typed(v.getElementAtIndex(i))).toList();
      case OBJECT -> IntStream.range(0, v.numObjectElements()).mapToObj(v::getFieldAtIndex)
          .collect(Collectors.toMap(field -> field.key, field -> typed(field.value)));
      default -> v.getLong();
    };
    String name = v.getType().name();
    return Collections.singletonMap(NAMES.getOrDefault(name, name.toLowerCase()), payload);
  }
}
