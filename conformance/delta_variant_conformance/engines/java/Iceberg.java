import com.fasterxml.jackson.databind.JsonNode;
import java.io.File;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.Files;
import org.apache.iceberg.IcebergBuild;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.MetricsConfig;
import org.apache.iceberg.Schema;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetReaders;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.mapping.MappedField;
import org.apache.iceberg.mapping.NameMapping;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.parquet.ParquetUtil;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.variants.Variant;
import org.apache.iceberg.variants.VariantArray;
import org.apache.iceberg.variants.VariantMetadata;
import org.apache.iceberg.variants.VariantObject;
import org.apache.iceberg.variants.VariantValue;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.schema.Type;

/** Iceberg's Java library: the generic readers and writers of Parquet files, and the metrics of a file. */
final class Iceberg {
  /** Iceberg's default is 16 characters, Delta's 32: the expected bounds of the cases. */
  private static final MetricsConfig METRICS =
      MetricsConfig.fromProperties(Map.of("write.metadata.metrics.default", "truncate(32)"));

  private Iceberg() {}

  public static void main(String[] arguments) throws Exception {
    Server.serve(
        IcebergBuild.version(),
        Map.of(
            "decode", Iceberg::decode,
            "read", Iceberg::read,
            "shred", Iceberg::shred,
            "collect_stats", Iceberg::collectStats));
  }

  private static ByteBuffer buffer(byte[] bytes) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  private static Object decode(JsonNode request) {
    VariantMetadata metadata = VariantMetadata.from(buffer(Server.bytes(request.get("metadata"))));
    return typed(VariantValue.from(metadata, buffer(Server.bytes(request.get("value")))));
  }

  private static Schema schema(JsonNode request) throws Exception {
    return new Schema(Types.NestedField.optional(id(request), request.get("column").asText(), Types.VariantType.get()));
  }

  /** Returns the field id of the column: that of the file if it has ids. */
  private static int id(JsonNode request) throws Exception {
    LocalInputFile file = new LocalInputFile(Path.of(request.get("file").asText()));
    try (ParquetFileReader reader = ParquetFileReader.open(file)) {
      Type.ID id = reader.getFileMetaData().getSchema().getType(request.get("column").asText()).getId();
      return id == null ? 1 : id.intValue();
    }
  }

  private static InputFile input(JsonNode request) {
    return Files.localInput(request.get("file").asText());
  }

  private static NameMapping names(JsonNode request) throws Exception {
    return NameMapping.of(MappedField.of(id(request), request.get("column").asText()));
  }

  private static List<Variant> rows(JsonNode request) throws Exception {
    Schema schema = schema(request);
    List<Variant> rows = new ArrayList<>();
    Parquet.ReadBuilder builder = Parquet.read(input(request)).project(schema).withNameMapping(names(request));
    try (CloseableIterable<Record> records =
        builder.createReaderFunc(stored -> GenericParquetReaders.buildReader(schema, stored)).build()) {
      for (Record record : records) {
        rows.add((Variant) record.get(0));
      }
    }
    return rows;
  }

  private static Object read(JsonNode request) throws Exception {
    List<Object> answers = new ArrayList<>();
    for (Variant row : rows(request)) {
      answers.add(row == null ? null : answer(row));
    }
    return answers;
  }

  private static Object answer(Variant variant) {
    ByteBuffer metadata = buffer(new byte[variant.metadata().sizeInBytes()]);
    variant.metadata().writeTo(metadata, 0);
    ByteBuffer value = buffer(new byte[variant.value().sizeInBytes()]);
    variant.value().writeTo(value, 0);
    return Server.variant(metadata.rewind(), value.rewind());
  }

  private static Object shred(JsonNode request) throws Exception {
    Schema schema = schema(request);
    Parquet.WriteBuilder builder =
        Parquet.write(Files.localOutput(new File(request.get("out").asText())))
            .schema(schema)
            .variantShreddingFunc((id, name) -> ShreddingTypes.typedValue(request.get("schema")))
            .createWriterFunc(GenericParquetWriter::create);
    try (FileAppender<Record> writer = builder.build()) {
      for (Variant row : rows(request)) {
        Record record = GenericRecord.create(schema);
        record.set(0, row);
        writer.add(record);
      }
    }
    return null;
  }

  private static Object collectStats(JsonNode request) throws Exception {
    int id = id(request);
    Metrics metrics = ParquetUtil.fileMetrics(input(request), METRICS, names(request));
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("min", bound(metrics.lowerBounds().get(id)));
    answer.put("max", bound(metrics.upperBounds().get(id)));
    if (metrics.nullValueCounts().containsKey(id)) {
      answer.put("null_count", metrics.nullValueCounts().get(id));
    }
    return answer;
  }

  private static Object bound(ByteBuffer bound) {
    return bound == null ? null : answer(Variant.from(bound));
  }

  /** Returns a value as a typed value of the case format. */
  private static Map<String, Object> typed(VariantValue value) {
    Map<String, Object> typed = new LinkedHashMap<>();
    switch (value.type()) {
      case OBJECT -> typed.put("object", fields(value.asObject()));
      case ARRAY -> typed.put("array", elements(value.asArray()));
      case NULL -> typed.put("null", null);
      case BOOLEAN_TRUE, BOOLEAN_FALSE -> typed.put("boolean", value.asPrimitive().get());
      case FLOAT, DOUBLE -> typed.put(name(value), Server.number(((Number) value.asPrimitive().get()).doubleValue()));
      case DECIMAL4, DECIMAL8, DECIMAL16 ->
          typed.put(name(value), ((BigDecimal) value.asPrimitive().get()).toPlainString());
      case BINARY -> typed.put("binary", Server.hex((ByteBuffer) value.asPrimitive().get()));
      case UUID -> typed.put("uuid", value.asPrimitive().get().toString());
      case TIMESTAMPTZ -> typed.put("timestamp", value.asPrimitive().get());
      case TIMESTAMPNTZ -> typed.put("timestamp_ntz", value.asPrimitive().get());
      case TIMESTAMPTZ_NANOS -> typed.put("timestamp_nanos", value.asPrimitive().get());
      case TIMESTAMPNTZ_NANOS -> typed.put("timestamp_ntz_nanos", value.asPrimitive().get());
      default -> typed.put(name(value), value.asPrimitive().get());
    }
    return typed;
  }

  private static String name(VariantValue value) {
    return value.type().name().toLowerCase();
  }

  private static List<Object> elements(VariantArray array) {
    List<Object> elements = new ArrayList<>();
    for (int index = 0; index < array.numElements(); index++) {
      elements.add(typed(array.get(index)));
    }
    return elements;
  }

  private static Map<String, Object> fields(VariantObject object) {
    Map<String, Object> fields = new LinkedHashMap<>();
    for (String name : object.fieldNames()) {
      fields.put(name, typed(object.get(name)));
    }
    return fields;
  }
}
