import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.Version;
import org.apache.parquet.avro.AvroParquetReader;
import org.apache.parquet.avro.AvroReadSupport;
import org.apache.parquet.avro.AvroSchemaConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.io.LocalInputFile;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;
import org.apache.parquet.variant.Variant;
import org.apache.parquet.variant.VariantJsonParser;
import org.apache.parquet.variant.VariantValueWriter;

/** parquet-java: its Avro records have Variants as bytes, and parquet-variant decodes, parses and shreds them. */
final class ParquetJava {
  private static final Set<String> MEMBERS = Set.of("metadata", "value");

  private ParquetJava() {}

  public static void main(String[] arguments) throws Exception {
    Server.serve(
        Version.VERSION_NUMBER,
        Map.of(
            "decode", ParquetJava::decode,
            "parse_json", ParquetJava::parseJson,
            "read", ParquetJava::read,
            "shred", ParquetJava::shred));
  }

  private static Object decode(JsonNode request) {
    return typed(new Variant(Server.bytes(request.get("value")), Server.bytes(request.get("metadata"))));
  }

  private static Object parseJson(JsonNode request) throws Exception {
    return answer(VariantJsonParser.parseJson(request.get("text").asText()));
  }

  private static Object read(JsonNode request) throws Exception {
    List<Object> answers = new ArrayList<>();
    for (Variant row : rows(request)) {
      answers.add(row == null ? null : answer(row));
    }
    return answers;
  }

  private static Object answer(Variant variant) {
    return Server.variant(variant.getMetadataBuffer(), variant.getValueBuffer());
  }

  private static List<Variant> rows(JsonNode request) throws Exception {
    List<Variant> rows = new ArrayList<>();
    LocalInputFile file = new LocalInputFile(Path.of(request.get("file").asText()));
    ParquetReader.Builder<GenericRecord> builder = AvroParquetReader.builder(file);
    try (ParquetReader<GenericRecord> reader = builder.withConf(configuration(file)).build()) {
      for (GenericRecord record = reader.read(); record != null; record = reader.read()) {
        Object cell = record.get(request.get("column").asText());
        rows.add(cell == null ? null : variant((GenericRecord) cell));
      }
    }
    return rows;
  }

  /** Reads by the Parquet schema: writers may store an Avro schema that has the columns of a shredded Variant. */
  private static Configuration configuration(LocalInputFile file) throws Exception {
    Configuration configuration = new Configuration(false);
    try (ParquetFileReader reader = ParquetFileReader.open(file)) {
      MessageType schema = reader.getFileMetaData().getSchema();
      AvroReadSupport.setAvroReadSchema(configuration, new AvroSchemaConverter(configuration).convert(schema));
    }
    return configuration;
  }

  private static Variant variant(GenericRecord group) {
    Set<String> names = group.getSchema().getFields().stream().map(Schema.Field::name).collect(Collectors.toSet());
    if (!names.equals(MEMBERS)) {
      throw new IllegalArgumentException("expected a Variant column, got " + group.getSchema());
    }
    return new Variant((ByteBuffer) group.get("value"), (ByteBuffer) group.get("metadata"));
  }

  private static Object shred(JsonNode request) throws Exception {
    String column = request.get("column").asText();
    MessageType schema = new MessageType("root", variantType(column, request.get("schema")));
    LocalOutputFile out = new LocalOutputFile(Path.of(request.get("out").asText()));
    try (ParquetWriter<Variant[]> writer = new ShreddingWriter(out, schema).build()) {
      for (Variant row : rows(request)) {
        writer.write(new Variant[] {row});
      }
    }
    return null;
  }

  private static Type variantType(String column, JsonNode schema) {
    var group = Types.optionalGroup().as(LogicalTypeAnnotation.variantType((byte) 1));
    var members = group.required(PrimitiveTypeName.BINARY).named("metadata");
    Type typed = ShreddingTypes.typedValue(schema);
    if (typed == null) {
      return members.required(PrimitiveTypeName.BINARY).named("value").named(column);
    }
    return members.optional(PrimitiveTypeName.BINARY).named("value").addField(typed).named(column);
  }

  /** Writes rows of one Variant. */
  private static final class ShreddingWriter extends ParquetWriter.Builder<Variant[], ShreddingWriter> {
    private final MessageType schema;

    ShreddingWriter(OutputFile out, MessageType schema) {
      super(out);
      this.schema = schema;
    }

    @Override
    protected ShreddingWriter self() {
      return this;
    }

    @Override
    protected WriteSupport<Variant[]> getWriteSupport(Configuration configuration) {
      return new ShreddingSupport(schema);
    }
  }

  private static final class ShreddingSupport extends WriteSupport<Variant[]> {
    private final MessageType schema;
    private RecordConsumer consumer;

    ShreddingSupport(MessageType schema) {
      this.schema = schema;
    }

    @Override
    public WriteContext init(Configuration configuration) {
      return new WriteContext(schema, Map.of());
    }

    @Override
    public void prepareForWrite(RecordConsumer recordConsumer) {
      consumer = recordConsumer;
    }

    @Override
    public void write(Variant[] row) {
      GroupType group = schema.getType(0).asGroupType();
      consumer.startMessage();
      if (row[0] != null) {
        consumer.startField(group.getName(), 0);
        VariantValueWriter.write(consumer, group, row[0]);
        consumer.endField(group.getName(), 0);
      }
      consumer.endMessage();
    }
  }

  /** Returns a value as a typed value of the case format. */
  private static Map<String, Object> typed(Variant variant) {
    Map<String, Object> typed = new LinkedHashMap<>();
    switch (variant.getType()) {
      case OBJECT -> typed.put("object", fields(variant));
      case ARRAY -> typed.put("array", elements(variant));
      case NULL -> typed.put("null", null);
      case BOOLEAN -> typed.put("boolean", variant.getBoolean());
      case BYTE -> typed.put("int8", variant.getByte());
      case SHORT -> typed.put("int16", variant.getShort());
      case INT -> typed.put("int32", variant.getInt());
      case LONG -> typed.put("int64", variant.getLong());
      case STRING -> typed.put("string", variant.getString());
      case FLOAT -> typed.put("float", Server.number(variant.getFloat()));
      case DOUBLE -> typed.put("double", Server.number(variant.getDouble()));
      case DECIMAL4, DECIMAL8, DECIMAL16 ->
          typed.put(variant.getType().name().toLowerCase(), variant.getDecimal().toPlainString());
      case DATE -> typed.put("date", variant.getInt());
      case TIME -> typed.put("time", variant.getLong());
      case TIMESTAMP_TZ -> typed.put("timestamp", variant.getLong());
      case TIMESTAMP_NTZ -> typed.put("timestamp_ntz", variant.getLong());
      case TIMESTAMP_NANOS_TZ -> typed.put("timestamp_nanos", variant.getLong());
      case TIMESTAMP_NANOS_NTZ -> typed.put("timestamp_ntz_nanos", variant.getLong());
      case BINARY -> typed.put("binary", Server.hex(variant.getBinary()));
      case UUID -> typed.put("uuid", variant.getUUID().toString());
    }
    return typed;
  }

  private static List<Object> elements(Variant variant) {
    List<Object> elements = new ArrayList<>();
    for (int index = 0; index < variant.numArrayElements(); index++) {
      elements.add(typed(variant.getElementAtIndex(index)));
    }
    return elements;
  }

  private static Map<String, Object> fields(Variant variant) {
    Map<String, Object> fields = new LinkedHashMap<>();
    for (int index = 0; index < variant.numObjectElements(); index++) {
      Variant.ObjectField field = variant.getFieldAtIndex(index);
      if (fields.put(field.key, typed(field.value)) != null) {
        throw new IllegalArgumentException("duplicate key " + field.key);
      }
    }
    return fields;
  }
}
