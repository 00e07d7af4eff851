import io.delta.kernel.Operation;
import io.delta.kernel.Scan;
import io.delta.kernel.Snapshot;
import io.delta.kernel.TableManager;
import io.delta.kernel.data.FilteredColumnarBatch;
import io.delta.kernel.data.Row;
import io.delta.kernel.defaults.engine.DefaultEngine;
import io.delta.kernel.engine.Engine;
import io.delta.kernel.internal.InternalScanFileUtils;
import io.delta.kernel.internal.data.ScanStateRow;
import io.delta.kernel.internal.util.Utils;
import io.delta.kernel.types.LongType;
import io.delta.kernel.types.StructType;
import io.delta.kernel.unitycatalog.UCCatalogManagedClient;
import io.delta.kernel.unitycatalog.UCTableIdentifier;
import io.delta.kernel.utils.CloseableIterable;
import io.delta.kernel.utils.CloseableIterator;
import io.delta.kernel.utils.FileStatus;
import io.delta.storage.commit.uccommitcoordinator.UCDeltaTokenBasedRestClient;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;

/**
 * Delta Kernel on tables: prints the latest version and the sorted values of `id`.
 *
 * <p>Arguments: the paths of tables. Or, for a catalog-managed table: `catalog`, URL, token, table id, location, name, and
 * optionally the value of the property `kernel`. With a value, sets the property without publishing the commit, and prints its
 * version.
 */
final class Kernel {
  private Kernel() {}

  public static void main(String[] arguments) throws Exception {
    Engine engine = DefaultEngine.create(new Configuration());
    if (arguments[0].equals("catalog")) {
      openInCatalog(engine, Arrays.copyOfRange(arguments, 1, arguments.length));
      return;
    }
    for (String path : arguments) {
      print(engine, TableManager.loadSnapshot(path).build(engine));
    }
  }

  private static void print(Engine engine, Snapshot snapshot) throws Exception {
    System.out.println(snapshot.getVersion() + " " + ids(engine, snapshot));
  }

  private static void openInCatalog(Engine engine, String[] arguments) throws Exception {
    String[] name = arguments[4].split("\\.");
    Map<String, String> settings = Map.of("uri", arguments[0], "auth.type", "static", "auth.token", arguments[1]);
    try (var client = new UCDeltaTokenBasedRestClient(settings, null)) {
      Snapshot snapshot =
          new UCCatalogManagedClient(client)
              .loadSnapshot(
                  engine,
                  arguments[2],
                  arguments[3],
                  new UCTableIdentifier(name[0], name[1], name[2]),
                  Optional.empty(),
                  Optional.empty());
      if (arguments.length == 5) {
        print(engine, snapshot);
      } else {
        System.out.println(setProperty(engine, snapshot, arguments[5]));
      }
    }
  }

  private static long setProperty(Engine engine, Snapshot snapshot, String value) {
    return snapshot
        .buildUpdateTableTransaction("kernel", Operation.MANUAL_UPDATE)
        .withTablePropertiesAdded(Map.of("kernel", value))
        .build(engine)
        .commit(engine, CloseableIterable.emptyIterable())
        .getVersion();
  }

  private static TreeSet<Long> ids(Engine engine, Snapshot snapshot) throws Exception {
    StructType schema = new StructType().add("id", LongType.LONG);
    Scan scan = snapshot.getScanBuilder().withReadSchema(schema).build();
    Row state = scan.getScanState(engine);
    TreeSet<Long> ids = new TreeSet<>();
    try (CloseableIterator<FilteredColumnarBatch> files = scan.getScanFiles(engine)) {
      while (files.hasNext()) {
        try (CloseableIterator<Row> rows = files.next().getRows()) {
          while (rows.hasNext()) {
            addIds(engine, state, rows.next(), ids);
          }
        }
      }
    }
    return ids;
  }

  private static void addIds(Engine engine, Row state, Row file, TreeSet<Long> ids) throws Exception {
    FileStatus status = InternalScanFileUtils.getAddFileStatus(file);
    StructType schema = ScanStateRow.getPhysicalDataReadSchema(state);
    var data =
        engine
            .getParquetHandler()
            .readParquetFiles(Utils.singletonCloseableIterator(status), schema, Optional.empty())
            .map(result -> result.getData());
    try (var batches = Scan.transformPhysicalData(engine, state, file, data)) {
      while (batches.hasNext()) {
        try (CloseableIterator<Row> rows = batches.next().getRows()) {
          while (rows.hasNext()) {
            ids.add(rows.next().getLong(0));
          }
        }
      }
    }
  }
}
