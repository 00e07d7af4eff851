// Reproduces hudi#19567 on a release of Hudi: its Avro reader, and an insert that rewrites a small file. BUNDLE is
// hudi-spark3.5-bundle_2.12-VERSION.jar and CLIENT is hudi-java-client-VERSION.jar. JARs of PySpark come first,
// because the bundle has an older Parquet.
//
//   java -Dlog4j2.level=OFF -cp JARS_OF_PYSPARK/*:BUNDLE:CLIENT protocol_fixtures/reproduce/Hudi.java
//
// These releases shred only with Spark 4. The program replaces the file that Hudi wrote with a shredded one of the
// same rows.

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.IndexedRecord;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.client.HoodieJavaWriteClient;
import org.apache.hudi.client.common.HoodieJavaEngineContext;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.model.HoodieAvroPayload;
import org.apache.hudi.common.model.HoodieAvroRecord;
import org.apache.hudi.common.model.HoodieKey;
import org.apache.hudi.common.model.HoodieRecord;
import org.apache.hudi.common.model.HoodieTableType;
import org.apache.hudi.common.schema.HoodieSchema;
import org.apache.hudi.common.schema.HoodieSchemaType;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.util.Option;
import org.apache.hudi.common.util.collection.ClosableIterator;
import org.apache.hudi.config.HoodieIndexConfig;
import org.apache.hudi.config.HoodieWriteConfig;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.hudi.index.HoodieIndex;
import org.apache.hudi.io.storage.hadoop.HoodieAvroParquetReader;
import org.apache.hudi.storage.StoragePath;
import org.apache.hudi.storage.hadoop.HoodieHadoopStorage;
import org.apache.parquet.avro.AvroParquetReader;
import org.apache.parquet.avro.AvroParquetWriter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.util.HadoopInputFile;

public class Hudi {
  static final Configuration CONFIGURATION = new Configuration();
  static final Schema VARIANT = HoodieSchema.createVariant().toAvroSchema();
  static final Schema SHREDDED =
      HoodieSchema.createVariantShreddedObject(Map.of("key", HoodieSchema.create(HoodieSchemaType.STRING)))
          .toAvroSchema();
  static final Schema ROW =
      Schema.createRecord(
          "row", null, null, false, List.of(field("id", Schema.create(Schema.Type.STRING)), field("v", VARIANT)));

  /** The metadata and the value of {"key": "Ada"}. */
  static final byte[] METADATA = {1, 1, 0, 3, 'k', 'e', 'y'};
  static final byte[] VALUE = {2, 1, 0, 0, 4, 3 << 2 | 1, 'A', 'd', 'a'};

  public static void main(String[] arguments) throws Exception {
    File folder = Files.createTempDirectory("hudi").toFile();
    try (HoodieJavaWriteClient<HoodieAvroPayload> client = create(folder)) {
      insert(client, "1", "2");
      File file = newest(folder);
      print("Avro reader, unshredded file", () -> judge(readByHudi(file)));
      shred(file);
      print("Avro reader, shredded file", () -> judge(readByHudi(file)));
      print("insert that rewrites the file", () -> insertAndRead(client, folder));
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

  static HoodieJavaWriteClient<HoodieAvroPayload> create(File folder) throws Exception {
    HoodieTableMetaClient.newTableBuilder()
        .setTableType(HoodieTableType.COPY_ON_WRITE)
        .setTableName("t")
        .setRecordKeyFields("id")
        .setPayloadClassName(HoodieAvroPayload.class.getName())
        .initTable(HadoopFSUtils.getStorageConf(CONFIGURATION), folder.toString());
    HoodieWriteConfig options =
        HoodieWriteConfig.newBuilder()
            .withPath(folder.toString())
            .forTable("t")
            .withSchema(ROW.toString())
            .withParallelism(1, 1)
            .withEmbeddedTimelineServerEnabled(false)
            .withIndexConfig(HoodieIndexConfig.newBuilder().withIndexType(HoodieIndex.IndexType.INMEMORY).build())
            .withMetadataConfig(HoodieMetadataConfig.newBuilder().enable(false).build())
            .build();
    return new HoodieJavaWriteClient<>(
        new HoodieJavaEngineContext(HadoopFSUtils.getStorageConf(CONFIGURATION)), options);
  }

  static void insert(HoodieJavaWriteClient<HoodieAvroPayload> client, String... ids) {
    List<HoodieRecord<HoodieAvroPayload>> rows = new ArrayList<>();
    for (String id : ids) {
      Map<String, Object> fields = Map.of("metadata", ByteBuffer.wrap(METADATA), "value", ByteBuffer.wrap(VALUE));
      GenericRecord row = record(ROW, Map.of("id", id, "v", record(VARIANT, fields)));
      rows.add(new HoodieAvroRecord<>(new HoodieKey(id, ""), new HoodieAvroPayload(Option.of(row))));
    }
    String instant = client.startCommit();
    client.commit(instant, client.insert(rows, instant));
  }

  static String insertAndRead(HoodieJavaWriteClient<HoodieAvroPayload> client, File folder) throws Exception {
    insert(client, "3");
    return judge(read(newest(folder)));
  }

  static String judge(List<? extends IndexedRecord> rows) {
    List<String> lost = new ArrayList<>();
    for (IndexedRecord row : rows) {
      GenericRecord variant = (GenericRecord) ((GenericRecord) row).get("v");
      boolean typed = variant.hasField("typed_value") && variant.get("typed_value") != null;
      if (variant.get("value") == null && !typed) {
        lost.add(((GenericRecord) row).get("id").toString());
      }
    }
    return lost.isEmpty() ? rows.size() + " rows, right" : "lost " + lost.size() + " of " + rows.size() + " values";
  }

  static List<IndexedRecord> readByHudi(File file) throws Exception {
    StoragePath path = new StoragePath(file.toURI());
    HoodieHadoopStorage storage = new HoodieHadoopStorage(path, HadoopFSUtils.getStorageConf(CONFIGURATION));
    List<IndexedRecord> rows = new ArrayList<>();
    try (HoodieAvroParquetReader reader = new HoodieAvroParquetReader(storage, path);
        ClosableIterator<HoodieRecord<IndexedRecord>> records =
            reader.getRecordIterator(HoodieSchema.fromAvroSchema(ROW))) {
      records.forEachRemaining(record -> rows.add(record.getData()));
    }
    return rows;
  }

  /** Replace the file with a shredded one that has the same rows and the same entries in its footer. */
  static void shred(File file) throws Exception {
    List<GenericRecord> rows = read(file);
    Map<String, String> footer;
    try (ParquetFileReader reader = ParquetFileReader.open(input(file))) {
      footer = new HashMap<>(reader.getFileMetaData().getKeyValueMetaData());
    }
    footer.keySet().removeAll(List.of("parquet.avro.schema", "writer.model.name"));
    Files.delete(file.toPath());
    Files.deleteIfExists(new File(file.getParent(), "." + file.getName() + ".crc").toPath());
    Schema schema = withVariant(rows.get(0).getSchema(), SHREDDED);
    try (ParquetWriter<GenericRecord> writer =
        AvroParquetWriter.<GenericRecord>builder(new Path(file.toURI()))
            .withSchema(schema)
            .withConf(CONFIGURATION)
            .withExtraMetaData(footer)
            .build()) {
      for (GenericRecord row : rows) {
        GenericRecord shredded = new GenericData.Record(schema);
        schema.getFields().forEach(field -> shredded.put(field.name(), row.get(field.name())));
        shredded.put("v", shreddedVariant());
        writer.write(shredded);
      }
    }
  }

  static GenericRecord shreddedVariant() {
    Schema object = SHREDDED.getField("typed_value").schema();
    Schema key = object.getField("key").schema().getTypes().get(1);
    GenericRecord typed = record(object, Map.of("key", record(key, Map.of("typed_value", "Ada"))));
    return record(SHREDDED, Map.of("metadata", ByteBuffer.wrap(METADATA), "typed_value", typed));
  }

  static GenericRecord record(Schema schema, Map<String, Object> values) {
    GenericRecord record = new GenericData.Record(schema);
    values.forEach(record::put);
    return record;
  }

  static Schema.Field field(String name, Schema type) {
    return new Schema.Field(name, type, null, (Object) null);
  }

  static Schema withVariant(Schema row, Schema variant) {
    List<Schema.Field> fields = new ArrayList<>();
    for (Schema.Field field : row.getFields()) {
      fields.add(field.name().equals("v") ? field("v", variant) : new Schema.Field(field, field.schema()));
    }
    return Schema.createRecord(row.getName(), null, row.getNamespace(), false, fields);
  }

  static List<GenericRecord> read(File file) throws Exception {
    List<GenericRecord> rows = new ArrayList<>();
    try (ParquetReader<GenericRecord> reader =
        AvroParquetReader.<GenericRecord>builder(input(file)).withConf(CONFIGURATION).build()) {
      for (GenericRecord row = reader.read(); row != null; row = reader.read()) {
        rows.add(row);
      }
    }
    return rows;
  }

  static HadoopInputFile input(File file) throws Exception {
    return HadoopInputFile.fromPath(new Path(file.toURI()), CONFIGURATION);
  }

  static File newest(File folder) {
    return Stream.of(folder.listFiles((parent, name) -> name.endsWith(".parquet")))
        .max(Comparator.comparing(File::lastModified))
        .orElseThrow();
  }
}
