// Reproduces iceberg#15086, #16880 and #17397 on a release of Iceberg: its writer's file and its bounds.
//
//   java -cp iceberg-spark-runtime-4.0_2.13-VERSION.jar:JARS_OF_PYSPARK/* protocol_fixtures/reproduce/Iceberg.java

import java.io.File;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.IntStream;
import org.apache.iceberg.Files;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.Schema;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.InternalReader;
import org.apache.iceberg.data.parquet.InternalWriter;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageTypeParser;
import org.apache.iceberg.shaded.org.apache.parquet.schema.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.variants.ShreddedObject;
import org.apache.iceberg.variants.Variant;
import org.apache.iceberg.variants.VariantMetadata;
import org.apache.iceberg.variants.VariantValue;
import org.apache.iceberg.variants.Variants;

public class Iceberg {
  static final Schema SCHEMA =
      new Schema(Types.NestedField.optional(1, "v", Types.VariantType.get()));

  public static void main(String[] arguments) {
    print("iceberg#15086", Iceberg::restOfAnObject);
    print("iceberg#16880", Iceberg::binaryBound);
    print("iceberg#17397", Iceberg::textBounds);
    System.exit(0);
  }

  static void print(String bug, Callable<String> probe) {
    String answer;
    try {
      answer = probe.call();
    } catch (Throwable error) {
      answer = error.toString().lines().findFirst().orElse("");
    }
    System.out.println(bug + ": " + answer);
  }

  /** The fields that are not shredded are in the file. */
  static String restOfAnObject() throws Exception {
    VariantMetadata names = Variants.metadata("id", "name");
    ShreddedObject object = Variants.object(names);
    object.put("id", Variants.of(7L));
    object.put("name", Variants.of("Ada"));
    File file = temporary();
    write(file, "required group id { optional binary value; optional int64 typed_value; }", Variant.of(names, object));
    try (CloseableIterable<Record> rows =
        Parquet.read(Files.localInput(file))
            .project(SCHEMA)
            .createReaderFunc(type -> InternalReader.create(SCHEMA, type))
            .build()) {
      Variant found = (Variant) rows.iterator().next().getField("v");
      VariantValue name = found.value().asObject().get("name");
      return name != null && name.asPrimitive().get().equals("Ada") ? "right" : "lost the field name";
    }
  }

  /** The upper bound of a long binary is not below it. */
  static String binaryBound() throws Exception {
    byte[] bytes = new byte[20];
    IntStream.range(0, 20).forEach(index -> bytes[index] = (byte) (index + 1));
    Variant row = object(Variants.of(ByteBuffer.wrap(bytes)));
    ByteBuffer upper = (ByteBuffer) bound(write(temporary(), A + "binary typed_value; }", row), false);
    byte[] found = new byte[upper.remaining()];
    upper.duplicate().get(found);
    return Arrays.compareUnsigned(found, bytes) >= 0 ? "right" : "altered: the upper bound is below the value";
  }

  /** The bounds of two row groups have the order of UTF-8. */
  static String textBounds() throws Exception {
    Variant[] rows = {object(Variants.of("\uff5e")), object(Variants.of("\ud83d\ude00"))};
    Metrics metrics = write(temporary(), A + "binary typed_value (STRING); }", rows);
    List<String> found = List.of((String) bound(metrics, true), (String) bound(metrics, false));
    boolean right = found.equals(List.of("\uff5e", "\ud83d\ude00"));
    return right ? "right" : "altered: the lower bound is above the upper bound";
  }

  static final String A = "required group a { optional binary value; optional ";

  static Variant object(VariantValue value) {
    VariantMetadata names = Variants.metadata("a");
    ShreddedObject object = Variants.object(names);
    object.put("a", value);
    return Variant.of(names, object);
  }

  static Object bound(Metrics metrics, boolean lower) {
    ByteBuffer bytes = (lower ? metrics.lowerBounds() : metrics.upperBounds()).get(1);
    return Variant.from(bytes).value().asObject().get("$['a']").asPrimitive().get();
  }

  static File temporary() throws Exception {
    File file = File.createTempFile("iceberg", ".parquet");
    file.delete();
    file.deleteOnExit();
    return file;
  }

  static Metrics write(File file, String fields, Variant... rows) throws Exception {
    Type shredded =
        MessageTypeParser.parseMessageType("message m { optional group typed_value { " + fields + " } }")
            .getType("typed_value");
    FileAppender<Record> writer =
        Parquet.write(Files.localOutput(file))
            .schema(SCHEMA)
            .set("write.parquet.row-group-size-bytes", "1")
            .set("write.parquet.row-group-check-min-record-count", "1")
            .set("write.parquet.row-group-check-max-record-count", "1")
            .variantShreddingFunc((id, name) -> shredded)
            .createWriterFunc(type -> InternalWriter.create(SCHEMA.asStruct(), type))
            .build();
    try (writer) {
      for (Variant row : rows) {
        writer.add(GenericRecord.create(SCHEMA).copy("v", row));
      }
    }
    return writer.metrics();
  }
}
