import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeUnit;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;

/** Converts the shredding schema of a case to the Parquet type of {@code typed_value}. */
final class ShreddingTypes {
  private record Leaf(PrimitiveTypeName type, LogicalTypeAnnotation annotation) {}

  private static final Map<String, Leaf> LEAVES =
      Map.ofEntries(
          Map.entry("boolean", new Leaf(PrimitiveTypeName.BOOLEAN, null)),
          Map.entry("int8", new Leaf(PrimitiveTypeName.INT32, LogicalTypeAnnotation.intType(8))),
          Map.entry("int16", new Leaf(PrimitiveTypeName.INT32, LogicalTypeAnnotation.intType(16))),
          Map.entry("int32", new Leaf(PrimitiveTypeName.INT32, null)),
          Map.entry("int64", new Leaf(PrimitiveTypeName.INT64, null)),
          Map.entry("float", new Leaf(PrimitiveTypeName.FLOAT, null)),
          Map.entry("double", new Leaf(PrimitiveTypeName.DOUBLE, null)),
          Map.entry("date", new Leaf(PrimitiveTypeName.INT32, LogicalTypeAnnotation.dateType())),
          Map.entry("time", new Leaf(PrimitiveTypeName.INT64, LogicalTypeAnnotation.timeType(false, TimeUnit.MICROS))),
          Map.entry("timestamp", timestamp(true, TimeUnit.MICROS)),
          Map.entry("timestamp_ntz", timestamp(false, TimeUnit.MICROS)),
          Map.entry("timestamp_nanos", timestamp(true, TimeUnit.NANOS)),
          Map.entry("timestamp_ntz_nanos", timestamp(false, TimeUnit.NANOS)),
          Map.entry("binary", new Leaf(PrimitiveTypeName.BINARY, null)),
          Map.entry("string", new Leaf(PrimitiveTypeName.BINARY, LogicalTypeAnnotation.stringType())),
          Map.entry("uuid", new Leaf(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, LogicalTypeAnnotation.uuidType())));

  private ShreddingTypes() {}

  private static Leaf timestamp(boolean isUtc, TimeUnit unit) {
    return new Leaf(PrimitiveTypeName.INT64, LogicalTypeAnnotation.timestampType(isUtc, unit));
  }

  /** Returns the optional {@code typed_value} of a schema, or null if the schema has none. */
  static Type typedValue(JsonNode schema) {
    if (schema.isNull()) {
      return null;
    }
    if (schema.has("array")) {
      return Types.optionalList().element(group("element", schema.get("array"))).named("typed_value");
    }
    if (schema.has("object")) {
      List<Type> fields = new ArrayList<>();
      schema.get("object").fields().forEachRemaining(each -> fields.add(group(each.getKey(), each.getValue())));
      return Types.optionalGroup().addFields(fields.toArray(new Type[0])).named("typed_value");
    }
    String name = schema.asText();
    return name.startsWith("decimal(") ? decimal(name) : leaf(LEAVES.get(name));
  }

  private static Type group(String name, JsonNode schema) {
    var group = Types.requiredGroup().optional(PrimitiveTypeName.BINARY).named("value");
    Type typed = typedValue(schema);
    return (typed == null ? group : group.addField(typed)).named(name);
  }

  private static Type leaf(Leaf leaf) {
    var type = Types.optional(leaf.type());
    if (leaf.type() == PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY) {
      type = type.length(16);
    }
    return type.as(leaf.annotation()).named("typed_value");
  }

  private static Type decimal(String name) {
    String[] parts = name.substring("decimal(".length(), name.length() - 1).split(",");
    int precision = Integer.parseInt(parts[0].strip());
    LogicalTypeAnnotation annotation = LogicalTypeAnnotation.decimalType(Integer.parseInt(parts[1].strip()), precision);
    if (precision > 18) {
      return Types.optional(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY).length(16).as(annotation).named("typed_value");
    }
    PrimitiveTypeName stored = precision > 9 ? PrimitiveTypeName.INT64 : PrimitiveTypeName.INT32;
    return Types.optional(stored).as(annotation).named("typed_value");
  }
}
