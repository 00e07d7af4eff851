// Looks for paimon#6936 in a release of Paimon: reads paths of a column from files that are shredded by these paths, by
// others, and not at all.
//
//   java -cp paimon-bundle-VERSION.jar:JARS_OF_PYSPARK/* protocol_fixtures/reproduce/Paimon.java
//
// The bug is in no release. It is in builds of the main branch of December 2025.

import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.variant.GenericVariant;
import org.apache.paimon.fs.Path;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.Schema;
import org.apache.paimon.table.Table;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.RowType;

public class Paimon {
  /** The names by which the column `v` of each file is shredded. The column `w` is never shredded. */
  static final List<List<String>> FILES = List.of(List.of(), List.of("age", "city"), List.of("name"));

  static final List<String> JSON =
      List.of(
          "{\"age\":\"26\",\"city\":\"Oslo\"}",
          "{\"age\":\"27\",\"name\":\"Ada\"}",
          "{\"age\":28,\"city\":\"Rome\"}");

  /** The values in `JSON` of each path, as strings. */
  static final Map<String, List<String>> PATHS =
      Map.of(
          "$.age", List.of("26", "27", "28"),
          "$.city", List.of("Oslo", "null", "Rome"),
          "$.name", List.of("null", "Ada", "null"),
          "$.missing", List.of("null", "null", "null"));

  public static void main(String[] arguments) throws Exception {
    File folder = Files.createTempDirectory("paimon").toFile();
    Table table = create(folder);
    for (List<String> names : FILES) {
      append(table, names);
    }
    print("files", () -> shreddedFiles(folder) + " shredded");
    for (int column = 0; column < 2; column++) {
      int index = column;
      String name = "vw".substring(index, index + 1);
      print("values of " + name, () -> wholeValues(table, index));
      for (String path : PATHS.keySet().stream().sorted().toList()) {
        print("path " + path + " of " + name, () -> paths(table, index, List.of(path)));
      }
      print("two paths of " + name, () -> paths(table, index, List.of("$.age", "$.city")));
    }
    System.exit(0);
  }

  static void print(String subject, Callable<String> probe) {
    String answer;
    try {
      answer = probe.call();
    } catch (Throwable error) {
      Throwable cause = error;
      while (cause.getCause() != null) {
        cause = cause.getCause();
      }
      answer = cause.toString().lines().findFirst().orElse("");
    }
    System.out.println(subject + ": " + answer);
  }

  static Table create(File folder) throws Exception {
    Catalog catalog = CatalogFactory.createCatalog(CatalogContext.create(new Path(folder.toURI())));
    catalog.createDatabase("d", true);
    Identifier name = Identifier.create("d", "t");
    Schema.Builder schema = Schema.newBuilder().column("v", DataTypes.VARIANT()).column("w", DataTypes.VARIANT());
    catalog.createTable(name, schema.option("bucket", "-1").option("file.format", "parquet").build(), false);
    return catalog.getTable(name);
  }

  /** Append a file with all rows. */
  static void append(Table table, List<String> names) throws Exception {
    String fields =
        names.stream().map(name -> "{\"name\":\"" + name + "\",\"type\":\"STRING\"}").collect(Collectors.joining(","));
    String schema =
        "{\"type\":\"ROW\",\"fields\":[{\"name\":\"v\",\"type\":{\"type\":\"ROW\",\"fields\":[" + fields + "]}}]}";
    Map<String, String> options = names.isEmpty() ? Map.of() : Map.of("parquet.variant.shreddingSchema", schema);
    BatchWriteBuilder builder = table.copy(options).newBatchWriteBuilder();
    try (BatchTableWrite write = builder.newWrite();
        BatchTableCommit commit = builder.newCommit()) {
      for (String json : JSON) {
        write.write(GenericRow.of(GenericVariant.fromJson(json), GenericVariant.fromJson(json)));
      }
      commit.commit(write.prepareCommit());
    }
  }

  /** Count the Parquet files, and those with a column `typed_value`. */
  static String shreddedFiles(File folder) throws Exception {
    try (Stream<java.nio.file.Path> files = Files.walk(folder.toPath())) {
      List<java.nio.file.Path> found = files.filter(file -> file.toString().endsWith(".parquet")).toList();
      int shredded = 0;
      for (java.nio.file.Path file : found) {
        shredded += Files.readString(file, StandardCharsets.ISO_8859_1).contains("typed_value") ? 1 : 0;
      }
      return shredded + " of " + found.size();
    }
  }

  static String wholeValues(Table table, int column) throws Exception {
    ReadBuilder builder = table.newReadBuilder().withProjection(new int[] {column});
    return judge(read(builder, row -> row.isNullAt(0) ? "null" : row.getVariant(0).toJson()), JSON);
  }

  static String paths(Table table, int column, List<String> paths) throws Exception {
    List<String> expected =
        IntStream.range(0, JSON.size())
            .mapToObj(row -> paths.stream().map(path -> PATHS.get(path).get(row)).toList().toString())
            .toList();
    ReadBuilder builder = table.newReadBuilder();
    DataField field = table.rowType().getFields().get(column);
    if (exists("VariantMetadataUtils")) {
      builder = byDescriptions(builder, field, paths);
    } else if (exists("VariantAccessInfo")) {
      builder = byAccessInfo(builder, field, paths);
    } else {
      return "this release reads whole values only";
    }
    return judge(read(builder, row -> strings(row.getRow(0, paths.size()), paths.size())), expected);
  }

  static final String PACKAGE = "org.apache.paimon.data.variant.";

  static boolean exists(String name) {
    try {
      return Class.forName(PACKAGE + name) != null;
    } catch (ClassNotFoundException error) {
      return false;
    }
  }

  /** Select paths as Paimon 1.4 does: by a row type whose fields have paths in their descriptions. */
  static ReadBuilder byDescriptions(ReadBuilder builder, DataField field, List<String> paths) {
    List<DataField> fields = new ArrayList<>();
    for (String path : paths) {
      String description = "__VARIANT_METADATA" + path + ";true;UTC";
      fields.add(new DataField(fields.size(), "" + fields.size(), DataTypes.STRING(), description));
    }
    return builder.withReadType(new RowType(List.of(field.newType(new RowType(fields)))));
  }

  /** Select paths as the builds before the release of Paimon 1.4 do. The method and its types are in no release. */
  static ReadBuilder byAccessInfo(ReadBuilder builder, DataField field, List<String> paths) throws Exception {
    Constructor<?> newPath =
        Class.forName(PACKAGE + "VariantAccessInfo$VariantField").getConstructor(DataField.class, String.class);
    List<Object> fields = new ArrayList<>();
    for (String path : paths) {
      DataField name = new DataField(fields.size(), "" + fields.size(), DataTypes.STRING());
      fields.add(newPath.newInstance(name, path));
    }
    Class<?> type = Class.forName(PACKAGE + "VariantAccessInfo");
    Object columns = Array.newInstance(type, 1);
    Array.set(columns, 0, type.getConstructor(String.class, List.class).newInstance(field.name(), fields));
    builder.withReadType(new RowType(List.of(field)));
    return (ReadBuilder) ReadBuilder.class.getMethod("withVariantAccess", columns.getClass()).invoke(builder, columns);
  }

  static String strings(InternalRow row, int fields) {
    return IntStream.range(0, fields)
        .mapToObj(index -> row.isNullAt(index) ? "null" : row.getString(index).toString())
        .toList()
        .toString();
  }

  static List<String> read(ReadBuilder builder, Function<InternalRow, String> text) throws Exception {
    List<String> found = new ArrayList<>();
    try (RecordReader<InternalRow> reader = builder.newRead().createReader(builder.newScan().plan())) {
      reader.forEachRemaining(row -> found.add(text.apply(row)));
    }
    return found;
  }

  /** Compare the rows of all files, in any order of the files, with those of one file. */
  static String judge(List<String> found, List<String> rows) {
    Stream<String> expected = FILES.stream().flatMap(file -> rows.stream());
    boolean right = found.stream().sorted().toList().equals(expected.sorted().toList());
    return right ? "right" : "wrong values: expected " + rows + " of each file, got " + found;
  }
}
